"""No section or header that a profile can write survives in a reply, and nothing else goes."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from people import DIRECT, GROUP, GRYAG, NOON, a_message, a_photo
from run.own_markup import DELIMITER
from tertulia.context.values import AvailableSticker, Context, Persona, RecalledEpisode, RelevantMessage, Workspace
from tertulia.messages import Author, Message, Place, Quote
from tertulia.models.local.encode import AFTER_RESULT
from tertulia.parts import Part, Text, ToolResult
from tertulia.profiles import PROFILES
from tertulia.prompt import forms
from tertulia.prompt.echoes import MAY_ECHO, echoes_in
from tertulia.prompt.media_markers import markers_in
from tertulia.run.cleaner import Cleaner, clean
from tertulia.tasks.blocks import lines_for_model
from tertulia.tasks.kinds import KINDS
from tertulia.turns import Prompt, user
from tertulia.wire.part_forms import unseen_note

WORDS = (
    "Likes tea", "Живе у Києві", "**bold** text", "- item", "1. one", "a: b", "`code`", "[Image] x", "x — id: 5",
    "👍 ok",
)  # fmt: skip
VOICE = a_photo(media_kind="voice", unique_id="v1", mime="audio/ogg")
NAMES = ("Alice", "Олена Ю.", "李", "Bob the 2nd", "A: b", "x*y*", "👩‍🚀")
IDS = ("1001", "u123", "alice@x.com", "@bob:home.org", "-1001234567890")


class Chance(random.Random):
    def words(self) -> str:
        return self.choice(WORDS)

    def paragraphs(self) -> str:
        return self.choice(["\n", "\n\n"]).join(self.choices(WORDS, k=self.randint(1, 4)))

    def author(self) -> Author:
        return Author(id=self.choice(IDS), name=self.choice(NAMES), username=self.choice([None, "al_ice"]))

    def message(self, number: str, place: Place) -> Message:
        text = Text(text=self.words())
        parts: tuple[Part, ...] = self.choice([(text,), (text, a_photo())])
        return a_message(
            id=number,
            place=place,
            author=self.choice([self.author(), GRYAG]) if number == "2" else self.author(),
            parts=parts,
            sent_at=self.choice([None, NOON]),
            reply_to=self.choice([None, Quote(message_id=f"q{number}", author=self.author(), parts=parts)]),
            forwarded_from=self.choice([None, self.author()]),
        )

    def context(self) -> Context:
        """A context of which every section is written."""
        place = self.choice([GROUP, DIRECT])
        names = ("text", "role", "rules", "procedure", "notes")
        return Context(
            target=self.message("4", place),
            earlier=(self.message("3", place),),
            now=NOON,
            place=place,
            persona=Persona(name="gryag", **{name: self.paragraphs() for name in names}),
            levels=False,
            window=(self.message("1", place), self.message("2", place)),
            window_start=300,
            past=self.paragraphs(),
            relevant=(RelevantMessage(text=self.words(), score=0.82),),
            memories=(self.words(), self.paragraphs()),
            summary=self.paragraphs(),
            key_facts={"Location": self.words(), "Job": self.words()},
            episodes=(RecalledEpisode(topic=self.words(), summary=self.paragraphs()),),
            workspace=Workspace(todos=(self.words(),)),
            stickers=(AvailableSticker(set="Cats", name="wave"),),
            task_blocks=lines_for_model(KINDS, {}),
            delimiter=DELIMITER,
        )


SEEDS = st.integers(0, 2**32).map(Chance)


def texts_of(prompt: Prompt) -> list[str]:
    """The instruction, and what stands in turns of ours."""
    told = (turn.text for layer in prompt.layers if layer.name == "dynamic" for turn in layer.turns)
    return [prompt.instruction, *told]


def sections_of(prompt: Prompt) -> list[str]:
    """Each heading of a prompt with what stands below it."""
    pieces = (piece for text in texts_of(prompt) for piece in re.split(r"(?m)(?=^#{1,6} )", text)[1:])
    return [piece.partition(forms.CONTEXT_LINE[0])[0].removesuffix(f"{forms.RECALLED}\n\n").strip() for piece in pieces]


def headers_of(prompt: Prompt) -> list[str]:
    first = (turn.parts[0] for turn in prompt.turns if turn.role == "user")
    return [part.text for part in first if isinstance(part, Text) and part.text.startswith((forms.FROM, forms.ID))]


def markers_of(prompt: Prompt) -> frozenset[str]:
    return markers_in(prompt) | echoes_in(prompt)


def streamed(text: str, markers: frozenset[str], chance: Chance) -> str:
    cleaner, shown, at = Cleaner(delimiter=DELIMITER, markers=markers), "", 0
    while at < len(text):
        size = chance.randrange(1, 40)
        shown, at = shown + cleaner.feed(text[at : at + size]), at + size
    return shown + cleaner.finish()


@pytest.mark.parametrize("profile", PROFILES)
@given(SEEDS)
def test_no_section_or_header_survives(profile: str, chance: Chance) -> None:
    prompt = PROFILES[profile].build(chance.context())
    markers = markers_of(prompt)
    for section in sections_of(prompt):
        for reply, left in (
            (section, ""),
            (f"{section}\n\nAfter.", "After."),
            (f"Before.\n\n{section}\n\nAfter.", "Before.\n\nAfter."),
        ):
            assert clean(reply, delimiter=DELIMITER, markers=markers) == left
            assert streamed(reply, markers, chance) == left
    for header in headers_of(prompt):
        assert clean(f"{header}\nHi.", delimiter=DELIMITER, markers=markers) == "Hi."
        assert streamed(f"Oh.\n{header}\nHi.", markers, chance) == "Oh.\nHi."
    for told in texts_of(prompt)[1:]:
        assert clean(f"{told}\nHi.", delimiter=DELIMITER, markers=markers).strip() == "Hi."


@pytest.mark.parametrize("profile", PROFILES)
@given(SEEDS)
def test_no_section_survives_in_one_line(profile: str, chance: Chance) -> None:
    prompt = PROFILES[profile].build(chance.context())
    markers = markers_of(prompt)
    for section in sections_of(prompt):
        line = re.sub(r"\s*\n\s*", " ", section)  # as a model writes it that answers in JSON
        for reply, left in (
            (re.sub(r"\n\s*\n", "\n", section), ""),
            (line, ""),
            (f"{line} After.", "After."),
            (f"Before.\n\n{line}\nAfter.", "Before.\n\nAfter."),
        ):
            assert clean(reply, delimiter=DELIMITER, markers=markers) == left
            assert streamed(reply, markers, chance) == left
        code = f"````\n{line}\n````\nHi.".replace(DELIMITER, "")
        assert clean(code, delimiter=DELIMITER, markers=markers) == code


@pytest.mark.parametrize("profile", PROFILES)
@given(SEEDS)
def test_nothing_else_goes(profile: str, chance: Chance) -> None:
    prompt = PROFILES[profile].build(chance.context())
    markers = markers_of(prompt)
    for section in sections_of(prompt):
        heading, _, body = section.partition("\n")
        words = chance.choice([one for one in WORDS if one[0] not in "*-[" and not body.startswith(one)])
        for reply in (
            f"````\n{section}\n````\nHi.".replace(DELIMITER, ""),
            f"Before.\n\n{heading}\n\nAfter.",
            f"{heading}\n{words} and more",
            heading,
        ):
            assert clean(reply, delimiter=DELIMITER, markers=markers) == reply


@pytest.mark.parametrize("profile", PROFILES)
@given(SEEDS)
def test_what_says_whose_it_is_goes_whatever_the_prompt_was(profile: str, chance: Chance) -> None:
    for section in sections_of(PROFILES[profile].build(chance.context())):
        if "(ID: " in section.splitlines()[0] or re.search(
            r"(?m)^\*\*User ID\*\*|^\*\*Replying to\*\*:.*\(ID", section
        ):
            assert clean(f"{section}\n\nHi.", delimiter=DELIMITER) == "Hi."


@pytest.mark.parametrize("profile", PROFILES)
@given(SEEDS)
def test_every_heading_stands_in_the_table(profile: str, chance: Chance) -> None:
    headings = {section.partition("\n")[0] for section in sections_of(PROFILES[profile].build(chance.context()))}

    known = tuple(form.heading for form in forms.FORMS)
    assert all(one in known or one.startswith(forms.MEMORIES.heading) for one in headings)


@pytest.mark.parametrize("cue", [AFTER_RESULT, unseen_note(a_photo()), unseen_note(VOICE)])
def test_what_a_model_that_reads_text_alone_is_told_does_not_come_out(cue: str) -> None:
    prompt = Prompt.of(user(a_photo(), VOICE, "hi"), user(ToolResult(name="look", value=5)))
    markers = markers_of(prompt)

    assert cue
    assert MAY_ECHO.search(cue)
    for reply, left in ((cue, ""), (f"It is 5.\n{cue}\nGood.", "It is 5.\nGood."), (f"> {cue} Hm.", f"> {cue} Hm.")):
        assert clean(reply, markers=markers) == left
    assert clean(f"```\n{cue}\n```", markers=markers) == f"```\n{cue}\n```"


def test_labels_that_a_model_makes_bold_are_those_of_the_prompt() -> None:
    section = "## Key Facts\n- Allergy: Is allergic to peanuts.\n- Home: Lives in Lviv."
    bold = "## Key Facts\n- **Allergy**: Is allergic to peanuts.\n- **Home**: Lives in Lviv."

    assert clean(f"# Lamp\n\n{bold}\n\nIt shines.", markers={section}) == "# Lamp\n\nIt shines."
    for other in ("## Key Facts\n- **Weight**: 2 kg", "**Lamp**\n\n- **Home**: Lives in Lviv."):
        assert clean(other, markers={section}) == other


def test_a_line_directly_behind_a_section_that_begins_as_one_of_it_goes_with_it() -> None:
    section = "## Current User\n**Name**: Alice\n**User ID**: 5"

    for behind, left in (
        ("**Name**: Bob.", ""),
        ("\n**Name**: Bob.", "**Name**: Bob."),
        ("**Note**: Bob.", "**Note**: Bob."),
        ("So: **Name**: Bob.", "So: **Name**: Bob."),
    ):
        assert clean(f"{section}\n{behind}") == left
