"""Files that a service no longer has: which they are, and what goes in their place."""

from msgspec.structs import replace

from tertulia.errors import FileGone
from tertulia.jsonio import loads
from tertulia.models.gemini.encode import encode_request
from tertulia.parts import Media, Text, ToolResult
from tertulia.run.fallbacks import ExpiredFiles
from tertulia.turns import Prompt, user

SITE = "https://generativelanguage.googleapis.com/v1beta/files"
ONE = Media(media_kind="photo", unique_id="1", mime="image/png", uri=f"{SITE}/one", rendered_text="A cat.")
TWO = Media(media_kind="photo", unique_id="2", mime="image/png", uri=f"{SITE}/one-two")
BOTH = Media(media_kind="voice", unique_id="3", mime="audio/ogg", uri=f"{SITE}/three", data=b"ogg")
PLACES = Prompt.of(user(ONE, "hi"), user(ToolResult(name="look", value=1, media=(TWO,))), user(BOTH))


def uris(prompt: Prompt) -> list[str | None]:
    media = [part for turn in prompt.turns for part in turn.parts if isinstance(part, Media)]
    within = [one for turn in prompt.turns for part in turn.parts if isinstance(part, ToolResult) for one in part.media]
    return [one.uri for one in (*media, *within)]


def test_the_file_that_is_named_is_dead_and_no_other() -> None:
    gone = ExpiredFiles()

    assert gone.add(FileGone("gone", file="one"), PLACES)
    assert not gone.add(FileGone("gone", file="one"), gone.without(Prompt.of(user(ONE))))
    assert uris(gone.without(PLACES)) == [None, BOTH.uri, TWO.uri]
    assert gone.without(PLACES).turns[0].parts == (
        Media(media_kind="photo", unique_id="1", mime="image/png", rendered_text="A cat."),
        Text(text="hi"),
    )


def test_where_none_is_named_all_that_go_by_an_address_are_dead() -> None:
    gone = ExpiredFiles()

    assert gone.add(FileGone("gone"), PLACES)
    assert uris(gone.without(PLACES)) == [None, BOTH.uri, None]  # the one with bytes goes by them


def test_what_holds_no_dead_file_is_left_as_it_is() -> None:
    gone = ExpiredFiles()
    gone.add(FileGone("gone", file="one"), PLACES)
    others = Prompt.of(user(TWO))

    assert gone.without(others) is others
    assert gone.without(PLACES).turns[1] is PLACES.turns[1]


def test_a_file_that_is_not_ready_is_not_dead() -> None:
    gone = ExpiredFiles()

    assert not gone.add(FileGone("soon", file="one", for_now=True), PLACES)
    assert gone.without(PLACES) is PLACES


def test_media_at_a_dead_address_go_from_their_bytes_where_there_are_some() -> None:
    gone = ExpiredFiles()
    gone.add(FileGone("gone", file="one"), PLACES)
    with_bytes = replace(ONE, data=b"\x89PNG")
    shown = ToolResult(name="look", value=1, media=(with_bytes,))

    sent = gone.without(Prompt.of(user(ONE, with_bytes), user(shown)))

    bare = replace(with_bytes, uri=None)
    assert sent.turns == (user(replace(ONE, uri=None), bare), user(replace(shown, media=(bare,))))
    contents = loads(encode_request(sent, model="gemini-3.8-flash"))["contents"]
    assert contents[0]["parts"] == [
        {"text": ONE.words},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
    ]
