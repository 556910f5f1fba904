"""What the profiles make of one rich context."""

from functools import partial

from msgspec.structs import replace

from model_text.rich_context import OTHER_AGENT, a_rich_context, contexts
from model_text.shown import a_section, in_json, shown_prompt
from people import ALICE, GRYAG
from prompt.scenarios import SCENARIOS, replying
from tertulia.context.values import Context
from tertulia.errors import NothingToSend
from tertulia.formats.context_block import block
from tertulia.formats.references import combine_references
from tertulia.messages import Author, Quote
from tertulia.parts import Media, Part, Text
from tertulia.profiles import PROFILES, Build


def of_profile(name: str) -> str:
    return laid_out(PROFILES[name].build)


def block_without_metadata() -> str:
    return laid_out(partial(block, include_meta=False))


def laid_out(build: Build) -> str:
    return "\n".join(a_section(title, _built(build, context)) for title, context in contexts().items())


def _built(build: Build, context: Context) -> str:
    try:
        return shown_prompt(build(context))
    except NothingToSend as error:
        return f"nothing to send: {error}"


def doubtful_replies() -> str:
    """What each profile says of a reply that may not have arrived."""
    sections = []
    for name, profile in PROFILES.items():
        context = replace(a_rich_context(), levels=profile.name in ("native", "block"))
        ours = replace(context.window[0], id="r-0", author=GRYAG, parts=(Text(text="It is booked."),), doubtful=True)
        prompt = profile.build(replace(context, window=(ours,), immediate=(ours,), recent=(), newer=(), notices=()))
        texts = [
            prompt.instruction,
            *(part.text for turn in prompt.turns for part in turn.parts if isinstance(part, Text)),
        ]
        lines = [line for text in texts for line in text.splitlines() if "not received" in line]
        sections.append(a_section(name, "\n".join(lines)))
    return "\n".join(sections)


def quotes_in_words() -> str:
    """The `single` profile for each voice of a quote and each kind of media in it."""
    media: dict[str, tuple[Part, ...]] = {
        "an image": (Media(media_kind="photo", unique_id="i", uri="https://example.com/i.jpg"),),
        "audio": (Media(media_kind="voice", unique_id="a", uri="https://example.com/a.mp3"),),
        "a video": (Media(media_kind="video", unique_id="v", uri="https://example.com/v.mp4"),),
        "a file": (Media(media_kind="document", unique_id="d", uri="https://example.com/d.txt", mime="text/plain"),),
        "words": (Text(text="the sea was warm"),),
    }
    voices = {"the author": ALICE, "this agent": GRYAG, "another agent": OTHER_AGENT, "nobody": None}
    voices["a person whose name poses"] = Author(id="9", name="You said earlier: me")
    context = replace(a_rich_context(), earlier=(), later=())
    sections = []
    for voice, author in voices.items():
        for kind, parts in media.items():
            quote = Quote(message_id="m0", author=author, parts=parts)
            asked = replace(context, target=replace(context.target, reply_to=quote))
            sections.append(a_section(f"{voice}, {kind}", shown_prompt(PROFILES["single"].build(asked))))
    for kind, parts in media.items():
        alone = replace(context, target=replace(context.target, reply_to=None, parts=parts))
        sections.append(a_section(f"{kind} alone", shown_prompt(PROFILES["single"].build(alone))))
    return "\n".join(sections)


def references() -> str:
    """The one message that `combine_references` makes of each scenario."""
    others = {
        "an empty message": "",
        "a video": [{"type": "video_url", "video_url": {"url": "https://example.com/v.mp4"}}],
        "an attachment": [{"type": "file", "file": {"file_id": "f"}}],
        "a reference by nobody": replying("and?", "words", ""),
    }
    told = [
        (scenario.number, combine_references(scenario.content, personality=scenario.personality))
        for scenario in SCENARIOS
    ]
    told += [(name, combine_references(content, personality="albert-einstein")) for name, content in others.items()]
    return "\n".join(a_section(name, in_json(message)) for name, message in told)
