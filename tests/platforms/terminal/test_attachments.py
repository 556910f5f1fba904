"""Files go with a message: by a command, by an option, or by a path that is pasted."""

import re
import shlex
from pathlib import Path

import pytest

from fakes import Blind
from platforms.terminal.test_session import Talk
from tertulia import Media, Text
from tertulia.models import Scripted
from tertulia.platforms.terminal.attachments import named_path, pasted_images

NAMED = '[photo "my cat.png"]'
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000100000001080600000"
    "01f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "my cat.png"
    path.write_bytes(PNG)
    return path


@pytest.mark.parametrize("form", ["'{}'", '"{}"', "@'{}'", "escaped", "{}", "address"])
def test_a_path_is_understood_as_people_write_it(picture: Path, form: str) -> None:
    written = {"escaped": shlex.quote(str(picture)), "address": picture.as_uri()}.get(form, form.format(picture))

    assert named_path(written) == picture


def test_images_are_found_among_the_words_of_a_line(picture: Path) -> None:
    other = picture.with_name("notes.txt")
    other.touch()

    assert pasted_images(f"what is on {shlex.quote(str(picture))} here") == ([picture], "what is on here")
    assert pasted_images(f"read {other}")[0] == []
    assert pasted_images("I don't see no.png \0")[0] == []
    assert pasted_images("x" * 5_000 + ".png")[0] == []
    assert pasted_images("see file://[bad] hi") == ([], "see file://[bad] hi")


def shown(model: Scripted) -> list[list[str]]:
    """The kinds of what each request ends with."""
    last = [prompt.turns[-1].parts for prompt in model.prompts]
    return [[part.text if isinstance(part, Text) else type(part).__name__ for part in parts] for parts in last]


async def test_an_attached_file_goes_with_the_next_message_alone(picture: Path) -> None:
    model = Scripted("A cat.", "Hello.")
    talk = Talk(model, f"/attach {shlex.quote(str(picture))}", "what is it?", "hi")

    assert await talk.run() == 0

    assert talk.seen == ["(my cat.png (1 kB): goes with your next message)", "A cat.", "Hello."]
    assert shown(model) == [[NAMED, "Media", "what is it?"], ["hi"]]
    [media] = [part for part in model.prompts[0].turns[-1].parts if isinstance(part, Media)]
    assert (media.media_kind, media.mime, media.label) == ("photo", "image/png", "my cat.png")


async def test_what_cannot_be_attached_is_told_in_one_line_and_nothing_is_sent(tmp_path: Path) -> None:
    talk = Talk(Scripted(), "/attach no.png", f"/attach {tmp_path}", "/attach")

    await talk.run()

    assert talk.seen == [
        "cannot read 'no.png': No such file or directory",
        f"cannot read '{tmp_path}': it is no file",
        "(nothing is attached)",
    ]


async def test_a_picture_that_a_model_cannot_see_is_told_and_counts_as_its_words(picture: Path) -> None:
    seeing, blind = [
        Talk(model, f"/attach {shlex.quote(str(picture))}", "what is it?", "/prompt")
        for model in (Scripted("A cat."), Blind("A cat?"))
    ]

    await seeing.run()
    await blind.run()

    assert blind.seen[1] == f"(scripted does not take my cat.png: only these words go: {NAMED})"
    assert blind.seen[2] == "A cat?"
    assert blind.seen[-1] == f"went in words: {NAMED}"
    assert seeing.seen[1] == "A cat."
    assert seeing.seen[-1] == "nothing was left out"
    tokens = [int(re.findall(r"about ([\d,]+) tokens", str(talk.seen))[0].replace(",", "")) for talk in (seeing, blind)]
    assert tokens[1] < 100 < tokens[0]


@pytest.mark.parametrize(
    ("answer", "sent"),
    [("", [NAMED, "Media", "what is"]), ("n", ["what is {}"]), (KeyboardInterrupt, None)],
)
async def test_a_pasted_path_to_an_image_is_offered_as_one(
    picture: Path, answer: str | type[BaseException], sent: list[str] | None
) -> None:
    model, path = Scripted("A cat."), shlex.quote(str(picture))

    talk = Talk(model, f"what is {path}", answer)
    await talk.run()

    assert talk.seen[0] == "(Enter sends my cat.png as a picture, n the line as it is, Ctrl-C nothing)"
    assert shown(model) == ([[one.format(path) for one in sent]] if sent else [])


async def test_a_path_in_a_pipe_is_text(picture: Path) -> None:
    model, path = Scripted("Hm."), shlex.quote(str(picture))

    await Talk(model, path, interactive=False).run()

    assert shown(model) == [[path]]
