"""The outcome of a run: replies and tasks from the model's texts, and the correction of bad blocks. Pure."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import count, takewhile
from typing import Any, TypeGuard, TypeVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from tertulia.errors import InvalidValue
from tertulia.messages import Message, Place, Reply
from tertulia.models.base import Response
from tertulia.parts import Media, Text, ToolCall, ToolResult
from tertulia.run.cleaner import clean
from tertulia.run.journal import Run
from tertulia.tasks.blocks import ParsedText, block_text, parse
from tertulia.tasks.graph import plan
from tertulia.tasks.kinds import KINDS, Body, Kind, is_usable, not_allowed
from tertulia.tasks.task import Custom, Send, SendSticker, Task, TaskBlock, Think, Wait, block_of
from tertulia.turns import Turn, model

MOST_STEPS = 100  # of one answer
MOST_MEDIA = 10  # that an answer sends; others are links or words, or counted
MOST_PROBLEMS = 20  # bad blocks that a correction lists

Kinds = Mapping[str, Kind]
Sendable = Send | SendSticker
Turns = tuple[Turn, ...]
AnyBlock = TypeVar("AnyBlock", bound=TaskBlock)


class RunOutcome(Struct, frozen=True, kw_only=True):
    replies: tuple[Reply, ...] = ()  # to send now
    unsent: int = 0  # media that are too many to go with the first of them, and have neither a link nor words
    streamed: tuple[bool, ...] = ()  # of each, whether it is text outside of blocks, which was streamed
    turns: tuple[tuple[Turn, ...], ...] = ()  # of each, those that stand for it in the history; none: its text does
    tasks: tuple[Task, ...] = ()
    silent: bool = False  # the model chose not to answer: it only thought


class ParsedTexts:
    """The texts of one run's model, each parsed once.

    Whether a sticker exists is looked up by the caller: `stickers` names it, `set_fault` takes the result.
    """

    def __init__(self, kinds: Kinds = KINDS) -> None:
        self._parsed: dict[str, ParsedText] = {}
        self._faults: dict[tuple[str, str], str | None] = {}  # of stickers, by set and name; None: there is none
        self._targets: dict[str, Place | str | None] = {}  # of what is sent elsewhere, or why it cannot; None: here
        looked_up = {
            "sticker": partial(_read_sticker, self._faults, kinds.get("sticker", not_allowed)),
            "send": partial(_read_send, self._targets, kinds.get("send", not_allowed)),
        }
        usable = {name: kind for name, kind in looked_up.items() if is_usable(kinds.get(name, not_allowed))}
        self.kinds: Kinds = {**kinds, **usable}

    def parse(self, text: str) -> ParsedText:
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = parse(text, kinds=self.kinds)
        return found

    def stickers(self, text: str) -> list[tuple[str, str]]:
        """Return set and name of the stickers in a text that were not looked up yet."""
        named = [(one.set, one.name) for one in self.parse(text).blocks if isinstance(one, SendSticker)]
        return [one for one in dict.fromkeys(named) if one not in self._faults]

    def set_fault(self, sticker: tuple[str, str], fault: str | None) -> None:
        """Take why a sticker cannot be sent; None if it can, or that is not known."""
        self._faults[sticker] = fault
        self._parsed.clear()

    def recipients(self, text: str) -> list[str]:
        """Return to whom a text sends elsewhere, of those that were not looked up yet."""
        named = [one.to for one in self.parse(text).blocks if isinstance(one, Send) and one.to]
        return [one for one in dict.fromkeys(named) if one not in self._targets]

    def set_target(self, recipient: str, target: Place | str | None) -> None:
        """Take where a message to a recipient goes: a place, or why it goes nowhere; None is where it is written."""
        self._targets[recipient] = target
        self._parsed.clear()

    def target(self, step: TaskBlock) -> Place | None:
        """Return the place to which a step is sent, where that is elsewhere."""
        found = self._targets.get(step.to) if isinstance(step, Send) and step.to else None
        return found if isinstance(found, Place) else None

    def correction(self, response: Response) -> str | None:
        """Return a text for the model about the blocks of its answer that cannot be used, if there are any."""
        parsed = self.parse(response.text)
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
            + f"\n{_note_on_other_blocks(parsed)} Write the ones above again in the right form, and nothing else; "
            "if they are not needed, write only a `# «think»` block."
        )


def _read_sticker(faults: Mapping[tuple[str, str], str | None], kind: Kind, body: Body) -> object:
    block = kind(body)
    if isinstance(block, SendSticker) and (fault := faults.get((block.set, block.name))):
        raise InvalidValue(fault)
    return block


def _read_send(targets: Mapping[str, Place | str | None], kind: Kind, body: Body) -> object:
    block = kind(body)
    if not isinstance(block, Send) or block.to is None or block.to not in targets:
        return block
    target = targets[block.to]
    if isinstance(target, str):
        raise InvalidValue(target)
    return replace(block, to=None) if target is None else block


def _note_on_other_blocks(parsed: ParsedText) -> str:
    """Return the sentence for the model about the blocks that could be used."""
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
    """Return the replies and tasks of a run from its turns. *markers* stood for media in the prompt; none is shown."""
    texts = texts or ParsedTexts()
    parsed = [(turn, texts.parse(turn.text) if turn.role == "model" else ParsedText()) for turn in turns]
    raw_steps, plain_text = _steps(parsed)
    steps = [_clean_step(step, delimiter=delimiter, kinds=texts.kinds, markers=markers) for step in raw_steps]
    first_steps, later_steps = _split_at_wait(steps)
    quote = reply_to_id(target)
    sent = {number: reply for number, step in first_steps if (reply := _reply(step, target.place, quote))}
    replies, streamed = list(sent.values()), [number in plain_text for number in sent]
    silent = bool(steps) and all(isinstance(step, Think) for step in steps)
    media = _media_to_send(turns, of_tools=not silent)
    words = _words_for(media[MOST_MEDIA:])
    if media:
        first = replies[0] if replies else Reply(place=target.place, text="", reply_to=quote)
        streamed = streamed if replies else [True]
        text = "\n\n".join(filter(None, [first.text, "\n".join(words)]))
        replies[:1] = [replace(first, text=text, media=first.media + media[:MOST_MEDIA])]
    turns = _clean_turns(turns, delimiter=delimiter, markers=markers)
    plain = len(steps) <= 1 and len(replies) == 1 and not any(one.blocks or one.problems for _, one in parsed)
    written = _written(steps, plain_text, list(sent))
    return RunOutcome(
        replies=tuple(replies),
        unsent=max(0, len(media) - MOST_MEDIA - len(words)),
        streamed=tuple(streamed),
        turns=(turns,) if plain else tuple(_turns_of_replies(turns, replies, written)),
        tasks=tuple(_plan(later_steps, run, target, now, texts)),
        silent=silent,
    )


def _media_to_send(turns: Sequence[Turn], *, of_tools: bool) -> tuple[Media, ...]:
    """Return the media of the model, and those of tools, each once, in order."""
    found: dict[str, Media] = {}
    for turn in turns:
        for part in turn.parts:
            media: Sequence[Media] = ()
            if of_tools and isinstance(part, ToolResult) and not part.failed and not part.private_media:
                media = part.media
            elif isinstance(part, Media) and turn.role == "model":
                media = (part,)
            for one in media:
                found.setdefault(one.sha256 or one.unique_id, one if one.raw is None else replace(one, raw=None))
    return tuple(found.values())


def _words_for(media: Sequence[Media]) -> list[str]:
    """Return links or words for media that are too many to send, where there are any; not more than are sent."""
    words = [one.link or one.rendered_text or one.label for one in media]
    return [one for one in words if one][:MOST_MEDIA]


def reply_to_id(message: Message) -> str | None:
    """Return the id of the message that a reply quotes: in a group the message, in a direct chat none."""
    return None if message.place.kind == "direct" else message.id


def _clean_step(
    step: AnyBlock, *, delimiter: str, kinds: Kinds = KINDS, markers: Collection[str] = frozenset()
) -> AnyBlock:
    """Return the step with its text cleaned of markup."""
    if not isinstance(step, Send):
        return step
    return replace(step, text=clean(step.text, delimiter=delimiter, kinds=kinds, markers=markers))


def make_reply(step: Sendable, place: Place, quote: str | None, *, delimiter: str = "") -> Reply | None:
    """Return the step as a reply to the message *quote*; None if nothing is left of it after cleaning."""
    return _reply(_clean_step(step, delimiter=delimiter), place, quote)


def _reply(step: Sendable, place: Place, quote: str | None) -> Reply | None:
    if isinstance(step, SendSticker):
        label = f"{step.name} of the set {step.set}"
        one = Media(media_kind="sticker", unique_id=f"{step.set}/{step.name}", label=label)
        return Reply(place=place, text="", media=(one,), reply_to=step.reply_to or quote)
    return Reply(place=place, text=step.text, reply_to=step.reply_to or quote) if step.text.strip() else None


def _steps(parsed_turns: Iterable[tuple[Turn, ParsedText]]) -> tuple[list[TaskBlock], set[int]]:
    """Return all steps in order, and the numbers of those that send plain text from outside of blocks.

    Texts of several turns with only tools between them are one send. A text or block that is there already is left out:
    a model that was told of a bad block may repeat the good ones.
    """
    steps: list[TaskBlock] = []
    plain: set[int] = set()
    texts: set[str] = set()
    open_text = ""  # of the last send, while no block follows it
    was_corrected = False  # the model was told of a bad block
    for turn, parsed in parsed_turns:
        text = parsed.text.rstrip() if parsed.blocks or parsed.problems else parsed.text  # no blank lines of a heading
        if text and text not in texts and Send(text=text) not in steps:
            texts.add(text)
            if open_text:
                steps.pop()
            open_text = f"{open_text}\n\n{text}" if open_text else text
            plain.add(len(steps))
            steps.append(Send(text=open_text))
        if turn.role == "user" and not any(isinstance(part, ToolResult) for part in turn.parts):
            was_corrected = True
        steps += _new_blocks(parsed.blocks, steps, was_corrected=was_corrected)
        open_text = "" if parsed.blocks else open_text
    return steps[:MOST_STEPS], plain


def _new_blocks(blocks: Sequence[TaskBlock], steps: Sequence[TaskBlock], *, was_corrected: bool) -> list[TaskBlock]:
    """Return the blocks that are not among *steps* already. A wait belongs to the block after it."""
    new: list[TaskBlock] = []
    waits: list[TaskBlock] = []
    for block in blocks:
        if isinstance(block, Wait):
            waits.append(block)
            continue
        if block not in steps or not (was_corrected or isinstance(block, Send)):
            new += (*waits, block)
        waits = []
    return new + waits


def _split_at_wait(steps: Sequence[TaskBlock]) -> tuple[list[tuple[int, Sendable]], list[TaskBlock]]:
    """Return what is sent at once, numbered, and the rest: all after a wait, or after a custom block."""
    first = list(takewhile(lambda step: not isinstance(step, Wait | Custom), steps))
    sendable = [(number, step) for number, step in enumerate(first) if _is_sent_here(step)]
    return sendable, [step for step in first if not _is_sent_here(step)] + list(steps[len(first) :])


def _is_sent_here(step: TaskBlock) -> TypeGuard[Sendable]:
    return isinstance(step, SendSticker) or (isinstance(step, Send) and step.to is None)


def _clean_turns(turns: Sequence[Turn], *, delimiter: str, markers: Collection[str]) -> tuple[Turn, ...]:
    """Return the turns as the model is shown them later: its texts without our markup, with their blocks.

    A model that is shown its own leaks learns to leak. A text that changes loses its signature; calls, media and
    thoughts keep theirs.
    """
    return tuple(
        _with_text(turn, clean(turn.text, delimiter=delimiter, kinds=(), markers=markers))
        if turn.role == "model"
        else turn
        for turn in turns
    )


def _with_text(turn: Turn, text: str) -> Turn:
    """Return the turn with *text* in place of all its texts; the same turn where that changes nothing."""
    if text == turn.text:
        return turn
    first = next(number for number, part in enumerate(turn.parts) if isinstance(part, Text) and part.text)
    others = (part for part in turn.parts[first + 1 :] if not isinstance(part, Text) or not part.text)
    return replace(turn, parts=(*turn.parts[:first], *([Text(text=text)] if text else []), *others))


def _written(steps: Sequence[TaskBlock], plain: Collection[int], sent: Sequence[int]) -> list[str]:
    """Return the text of each of the steps *sent* in the history: it and its blocks as the model wrote them.

    A block that sends nothing stands with what was sent before it, or first. A wait stands nowhere, and what is sent
    after one stands where it is sent.
    """
    texts: list[list[str]] = [[] for _ in sent]
    for number, step in enumerate(steps if sent else ()):
        if number in sent or not isinstance(step, Sendable | Wait):
            text = step.text if isinstance(step, Send) and number in plain else block_text(step)
            texts[max(0, bisect_right(sent, number) - 1)].append(text)
    return ["\n\n".join(found) for found in texts]


def _turns_of_replies(turns: Sequence[Turn], replies: Sequence[Reply], written: Sequence[str]) -> Iterator[Turns]:
    """Yield the turns of each reply; those of the first begin with the calls and their results.

    What the model said beside a call is in the reply. Its media go with the first reply.
    """
    done = tuple(
        _with_text(turn, "") if turn.role == "model" else turn
        for turn in turns
        if any(isinstance(part, ToolCall | ToolResult) for part in turn.parts)
    )
    for reply, text in zip(replies, written or [""], strict=bool(replies)):
        media = () if done else tuple(one for one in reply.media if not one.sticker)
        is_told = bool(text) and (bool(done) or text != reply.text)
        yield (*done, model(text, *media, by=done[0].model if done else None)) if is_told else ()
        done = ()


def _plan(steps: Sequence[TaskBlock], run: Run, target: Message, now: datetime, texts: ParsedTexts) -> Iterable[Task]:
    ids = (f"{run.id}-t{number}" for number in count())
    steps = [step for step in steps if not isinstance(step, Send) or step.to is None or texts.target(step)]
    about = {"author": to_builtins(target.author), "source": target.id}
    known: dict[str, dict[str, Any]] = {
        "remember": about,
        "block": about,
        "unblock": about,
        "clear-conversation": {"beginning": run.horizon, **about},
    }
    for task in plan(steps, place=target.place, now=now, ids=ids, run=run.id):
        elsewhere = texts.target(block_of(task)) if "to" in task.args else None
        args = {name: value for name, value in task.args.items() if name != "to"}
        yield replace(task, place=elsewhere or task.place, args={**args, **known.get(task.kind, {})})
