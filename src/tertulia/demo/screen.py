"""Screens: what was observed in a demo, in two columns on a terminal, as plain lines, or as JSON."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from msgspec import Struct, json
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tertulia.demo.pipe_platform import BOT
from tertulia.demo.timeline import (
    Check,
    Drafted,
    Killed,
    Learned,
    Observation,
    PromptShown,
    Resumed,
    Said,
    Scene,
    Started,
    TaskStored,
    ToolRan,
)

INTRODUCTION = (
    "A group of three people and a bot, without a model or a key: the model's answers are scripted; the process, the\n"
    "engine, the store, the memory, the tools and the kill are real, and what is shown was observed."
)
LEFT, RIGHT = "what people see", "what the engine did, and what the model was sent"
SAME = "(the same message) "
HELD = "Every check held. Now talk with a model: tertulia chat"
FAILED = "Some checks did not hold, which is a bug in Tertulia."
WIDE = 96  # columns of a terminal from which notes are beside the conversation
LONGEST = 120  # characters of arguments and results of tools
SHORT_ID = r"\1…"
_ID = re.compile(r"([0-9a-f]{8})[0-9a-f]{8,}")
COLOURS = {"Ann": "cyan", "Bo": "magenta", "Cy": "yellow", BOT.name: "bold green"}


class Screen(Protocol):
    def show(self, observation: Observation) -> None: ...

    def close(self) -> None:
        """End what is being shown; called in any case."""
        ...

    def end(self, held: bool) -> None:
        """Say whether all checks held."""
        ...


class Note(NamedTuple):
    """A line about the engine."""

    text: str
    depth: int = 0  # how far it is indented
    bright: bool = False


def notes_of(observation: Observation) -> list[Note]:
    """Return what an observation says about the engine."""
    match observation:
        case Learned(about=about, text=text, sources=sources):
            said = [Note(f"from {name}: “{words}”", 1) for name, words in sources.items()]
            return [Note(f"learned of {about}: {text}", bright=True), *said]
        case PromptShown(step=0, layers=layers, remembered=remembered, end=end):
            tokens = " · ".join(f"{name} {count}" for name, count in layers.items())
            facts = [Note(f"remembered of {fact}", 1, bright=True) for fact in remembered]
            total = f"sent to the model: {sum(layers.values()):,} tokens"
            return [Note(total), Note(tokens, 1), *facts, Note(f"… “{end}”", 1)]
        case PromptShown(step=step, layers=layers, end=end):
            return [Note(f"sent in step {step}: {sum(layers.values()):,} tokens … {end}")]
        case ToolRan(name=name, args=args, result=result):
            given = ", ".join(f"{key}={_short(value)}" for key, value in args.items())
            return [Note(f"tool {name}({given})"), Note(f"→ {_short(result)}", 1)]
        case TaskStored(due_at=due_at):
            return [Note(f"stored: a task, due at {due_at:%H:%M:%S}", bright=True)]
        case Killed(open_runs=runs, answers=answers):
            return [Note(f"in the store: {runs} open run, its prompt, {answers or 'no'} answer")]
        case Resumed(run_id=run_id):
            return [Note(f"resumes run {_ID.sub(SHORT_ID, run_id)} from its journal", bright=True)]
    return []


def _short(value: object) -> str:
    """Return a value as JSON with its ids abbreviated, and cut."""
    text = _ID.sub(SHORT_ID, json.format(json.encode(value), indent=0).decode())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def line_of(observation: Observation) -> tuple[str, str] | None:
    """Return what people see of an observation: who, and what; None if they see nothing of it."""
    match observation:
        case Said(author=author, text=text):
            return author, text
        case Drafted(author=author, text=text):
            return author, f"{text}▌"
        case Started(pid=pid):
            return "", f"process {pid} runs the bot"
        case Killed(pid=pid, words=words):
            return "", f"kill -9 {pid}, after {words} words"
        case Check(text=text, held=held):
            return "✓" if held else "✗", text
    return None


class JsonScreen:
    """One JSON object a line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def show(self, observation: Observation) -> None:
        self._write(json.encode(observation).decode())

    def close(self) -> None:
        pass

    def end(self, held: bool) -> None:
        self._write(json.encode({"kind": "end", "held": held}).decode())


class PlainScreen:
    """Lines as they happen; notes are indented. An answer is shown when it is whole, or cut short."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._draft: Drafted | None = None
        write(INTRODUCTION)

    def show(self, observation: Observation) -> None:
        if isinstance(observation, Scene):
            self._write(f"\n{observation.title}")
        if isinstance(observation, Drafted):
            self._draft = observation
            return
        if isinstance(observation, Killed) and self._draft:
            self._line(self._draft)
        self._draft = None if isinstance(observation, Said | Killed) else self._draft
        self._line(observation)
        for note in notes_of(observation):
            self._write(f"      {'  ' * note.depth}{note.text}")

    def close(self) -> None:
        pass

    def end(self, held: bool) -> None:
        self._write(f"\n{HELD if held else FAILED}")

    def _line(self, observation: Observation) -> None:
        who, what = line_of(observation) or ("", "")
        if what:
            name = f"{who}: " if who.isalpha() else f"{who} ".lstrip()
            self._write(f"  {name}{what}")


class Row(Struct, kw_only=True):
    """What people see, and the notes beside it."""

    observation: Observation | None = None
    notes: list[Note] = []
    is_same: bool = False  # whether it is the message of an earlier row, which the bot goes on writing


class SceneView:
    """The observations of one scene, in two columns, or in one where the terminal is narrow."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, observation: Observation) -> None:
        """Add an observation. It replaces the draft that it continues."""
        last = self.rows[-1].observation if self.rows else None
        if _continues(observation, last):
            self.rows[-1].observation = observation
        elif line_of(observation) is not None:
            self.rows.append(Row(observation=observation, is_same=self._is_same(observation)))
        if notes := notes_of(observation):
            self.rows = self.rows or [Row()]
            self.rows[-1].notes.extend(notes)

    def _is_same(self, observation: Observation) -> bool:
        return any(_continues(observation, row.observation) for row in self.rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= WIDE and not self.is_list:
            yield columns((_styled(row), Group(*_notes(row))) for row in self.rows)
            return
        for row in self.rows:
            if row.observation:
                yield _styled(row)
            yield from (Padding(note, (0, 0, 0, 6)) for note in _notes(row))

    @property
    def is_list(self) -> bool:
        """Whether it has nothing but checks."""
        return all(isinstance(row.observation, Check) for row in self.rows)


def columns(rows: Iterable[tuple[RenderableType, RenderableType]]) -> Table:
    """Lay pairs out in two columns."""
    table = Table(box=box.MINIMAL, show_header=False, show_edge=False, expand=True, border_style="dim")
    table.add_column(ratio=5)
    table.add_column(ratio=6)
    for row in rows:
        table.add_row(*row)
    return table


def _notes(row: Row) -> list[Padding]:
    """Return the notes of a row; where one goes on in a second line, that is indented too."""
    styles = {True: "green", False: "dim"}
    return [Padding(Text(note.text, style=styles[note.bright]), (0, 0, 0, 2 * note.depth)) for note in row.notes]


def _continues(observation: Observation, last: Observation | None) -> bool:
    if not isinstance(last, Drafted) or not isinstance(observation, Drafted | Said):
        return False
    return observation.message_id == last.message_id


class TerminalScreen:
    """Redraws a scene until the next one begins. Where the console is no terminal, a scene is printed at its end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._view = SceneView()
        self._live: Live | None = None
        console.print(Text(INTRODUCTION.replace("\n", " "), style="dim"))
        if console.width >= WIDE:
            console.print()
            console.print(columns([(Text(LEFT, style="dim italic"), Text(RIGHT, style="dim italic"))]))

    def show(self, observation: Observation) -> None:
        if isinstance(observation, Scene):
            self._begin(observation.title)
            return
        self._view.add(observation)
        if self._live:
            self._live.update(self._view, refresh=True)

    def close(self) -> None:
        if self._live:
            self._live.stop()
        elif self._view.rows:
            self._console.print(self._view)
        self._live, self._view = None, SceneView()

    def end(self, held: bool) -> None:
        self._console.print()
        self._console.print(Text(HELD if held else FAILED, style="bold green" if held else "bold red"))

    def _begin(self, title: str) -> None:
        self.close()
        self._console.print()
        self._console.print(Text(title, style="bold"))
        if self._console.is_terminal:
            self._live = Live(self._view, console=self._console, auto_refresh=False)
            self._live.start()


def _styled(row: Row) -> Text:
    line = line_of(row.observation) if row.observation else None
    if line is None:
        return Text()
    who, what = line
    match row.observation:
        case Killed():
            return Text(what, style="bold red")
        case Started():
            return Text(what, style="dim")
        case Check(held=held):
            return Text.assemble((f"{who} ", "bold green" if held else "bold red"), what)
    return Text.assemble((f"{who}: ", COLOURS.get(who, "")), (SAME if row.is_same else "", "dim"), what)
