"""The outcome of a run: replies and tasks from the model's texts, and what to tell it of bad blocks. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count, takewhile
from typing import Any, TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from palaver.messages import Message, Place, Reply
from palaver.models.base import Response
from palaver.parts import Media, ToolCall, ToolResult
from palaver.run.clean.cleaner import clean
from palaver.run.journal import Run
from palaver.tasks.blocks import ParsedText, parse
from palaver.tasks.graph import plan
from palaver.tasks.kinds import KINDS, Kind
from palaver.tasks.task import Block, Custom, Send, Sticker, Task, Think, Wait
from palaver.turns import Turn, model

MOST_STEPS = 100  # in one answer
MOST_PROBLEMS = 20  # bad blocks that a model is told of

Kinds = Mapping[str, Kind]
Saying = Send | Sticker
AnyBlock = TypeVar("AnyBlock", bound=Block)


class RunOutcome(Struct, frozen=True, kw_only=True):
    replies: tuple[Reply, ...] = ()  # what goes out now
    streamed: tuple[bool, ...] = ()  # of each, whether it is what the model said outside of blocks, as it streamed
    turns: tuple[Turn, ...] = ()  # what the model did and said to write the first of them
    tasks: tuple[Task, ...] = ()
    silent: bool = False  # the model chose to say nothing: it only thought


class ParsedTexts:
    """The texts of one run's model, each parsed once."""

    def __init__(self, kinds: Kinds = KINDS) -> None:
        self.kinds = kinds
        self._parsed: dict[str, ParsedText] = {}

    def parsed(self, text: str) -> ParsedText:
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = parse(text, kinds=self.kinds)
        return found

    def objection(self, response: Response) -> str | None:
        """What a model must be told of the blocks in its answer that could not be read."""
        return _objection(self.parsed(response.text))


def _objection(parsed: ParsedText) -> str | None:
    problems = list(parsed.problems)
    if len(parsed.steps) > MOST_STEPS:
        problems.append(f"all blocks after the first {MOST_STEPS}: that is more than one answer may hold")
    if not problems:
        return None
    more = len(problems) - MOST_PROBLEMS
    lines = [*problems[:MOST_PROBLEMS], *([f"and {more} more"] if more > 0 else [])]
    return (
        "Some blocks of your last answer could not be used, and nobody has seen them:\n"
        + "\n".join(f"- {line}" for line in lines)
        + f"\n{_rest(parsed)} Write the ones above again in the right form, and nothing else; "
        "if they are not needed, write only a `# «think»` block."
    )


def _rest(parsed: ParsedText) -> str:
    """What became of the blocks that could be read."""
    if not parsed.skipped:
        return "All the rest of it was carried out."
    return (
        "Only what stands before the last of these was carried out. "
        "What follows it would have come too early, so write that again as well, below it."
    )


def run_outcome(
    turns: Sequence[Turn],
    run: Run,
    target: Message,
    *,
    now: datetime,
    delimiter: str = "",
    texts: ParsedTexts | None = None,
    markers: Collection[str] = frozenset(),
) -> RunOutcome:
    """The replies and the plan of a run that has come to its end, without *markers* that stood in what was asked."""
    texts = texts or ParsedTexts()
    parsed = [(turn, texts.parsed(turn.text) if turn.role == "model" else ParsedText()) for turn in turns]
    found, plain_text = _steps(parsed)
    steps = [_shown(step, delimiter=delimiter, kinds=texts.kinds, markers=markers) for step in found]
    said, later = _parted(steps)
    near = reply_to_id(target)
    worded = [(_reply(step, target.place, near), number in plain_text) for number, step in said]
    replies = [reply for reply, _ in worded if reply is not None]
    streamed = [plain for reply, plain in worded if reply is not None]
    shown = (part for turn in turns if turn.role == "model" for part in turn.parts if isinstance(part, Media))
    media = tuple(part if part.raw is None else replace(part, raw=None) for part in shown)
    if media:
        first = replies[0] if replies else Reply(place=target.place, text="", reply_to=near)
        streamed = streamed if replies else [True]
        replies[:1] = [replace(first, media=first.media + media)]
    plain = len(steps) <= 1 and len(replies) == 1 and not any(one.blocks or one.problems for _, one in parsed)
    return RunOutcome(
        replies=tuple(replies),
        streamed=tuple(streamed),
        turns=tuple(turns) if plain else _rounds(turns, replies[0].text) if replies else (),
        tasks=tuple(_planned(later, run, target, now)),
        silent=bool(steps) and all(isinstance(step, Think) for step in steps),
    )


def reply_to_id(message: Message) -> str | None:
    """Return the id of the message that a reply quotes: in a group the message, in a direct chat none."""
    return None if message.place.kind == "direct" else message.id


def _shown(step: AnyBlock, *, delimiter: str, kinds: Kinds = KINDS, markers: Collection[str] = frozenset()) -> AnyBlock:
    """The step as people may see it."""
    if not isinstance(step, Send):
        return step
    return replace(step, text=clean(step.text, delimiter=delimiter, kinds=kinds, markers=markers))


def make_reply(step: Saying, place: Place, near: str | None, *, delimiter: str = "") -> Reply | None:
    """What people get to see, *near* a message; None where nothing is left of it once it is cleaned."""
    return _reply(_shown(step, delimiter=delimiter), place, near)


def _reply(step: Saying, place: Place, near: str | None) -> Reply | None:
    if isinstance(step, Sticker):
        one = Media(media_kind="sticker", unique_id=f"{step.set}/{step.name}", rendered_text=step.name)
        return Reply(place=place, text="", media=(one,), reply_to=step.reply_to or near)
    return Reply(place=place, text=step.text, reply_to=step.reply_to or near) if step.text.strip() else None


def _steps(parsed_turns: Iterable[tuple[Turn, ParsedText]]) -> tuple[list[Block], set[int]]:
    """Return all steps in order, and the numbers of those that send plain text from outside of blocks.

    What was said in several turns with nothing but tools between is one send.

    What stands there already is not said again: a model that is told of a bad block may repeat the good ones.
    """
    steps: list[Block] = []
    plain: set[int] = set()
    heard: set[str] = set()  # what was said in each turn
    talking = ""  # what was said last, with no block after it
    told = False  # the model was told of a bad block
    for turn, parsed in parsed_turns:
        said = parsed.text.rstrip() if parsed.blocks or parsed.problems else parsed.text  # the heading's blank lines
        if said and said not in heard and Send(text=said) not in steps:
            heard.add(said)
            if talking:
                steps.pop()
            talking = f"{talking}\n\n{said}" if talking else said
            plain.add(len(steps))
            steps.append(Send(text=talking))
        told = told or (turn.role == "user" and not _has_results(turn))
        steps += _not_repeated(parsed.blocks, steps, told=told)
        talking = "" if parsed.blocks else talking
    return steps[:MOST_STEPS], plain


def _not_repeated(blocks: Sequence[Block], steps: Sequence[Block], *, told: bool) -> list[Block]:
    """The blocks that are not among *steps* already; a wait belongs to what comes after it."""
    new: list[Block] = []
    waits: list[Block] = []
    for block in blocks:
        if isinstance(block, Wait):
            waits.append(block)
            continue
        if block not in steps or not (told or isinstance(block, Send)):
            new += (*waits, block)
        waits = []
    return new + waits


def _has_results(turn: Turn) -> bool:
    return any(isinstance(part, ToolResult) for part in turn.parts)


def _parted(steps: Sequence[Block]) -> tuple[list[tuple[int, Saying]], list[Block]]:
    """What is said at once, numbered, and what remains: all that comes after a wait, or after work that may fail."""
    first = list(takewhile(lambda step: not isinstance(step, Wait | Custom), steps))
    said = [(number, step) for number, step in enumerate(first) if isinstance(step, Saying)]
    return said, [step for step in first if not isinstance(step, Saying)] + list(steps[len(first) :])


def _rounds(turns: Sequence[Turn], text: str) -> tuple[Turn, ...]:
    """Return the calls and their results, then one model turn with the text of the reply."""
    done = tuple(turn for turn in turns if any(isinstance(part, ToolCall | ToolResult) for part in turn.parts))
    return (*done, model(text, by=done[0].model)) if done and text else ()


def _planned(steps: Sequence[Block], run: Run, target: Message, now: datetime) -> Iterable[Task]:
    ids = (f"{run.id}-t{number}" for number in count())
    about = {"author": to_builtins(target.author), "source": target.id}
    known: dict[str, dict[str, Any]] = {
        "remember": about,
        "block": about,
        "unblock": about,
        "clear-conversation": {"beginning": run.horizon, **about},
    }
    for task in plan(steps, place=target.place, now=now, ids=ids, run=run.id):
        yield replace(task, args={**task.args, **known.get(task.kind, {})})
