"""Screens: what was observed in a demo, in two columns on a terminal, as plain lines, or as JSON."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct, json
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from palaver.demo.pipe_platform import BOT
from palaver.demo.timeline import (
    Check,
    Drafted,
    Killed,
    Learned,
    Observation,
    PromptSent,
    Resumed,
    Said,
    Scene,
    Started,
    TaskPlanned,
    ToolRan,
)

INTRODUCTION = (
    "A group of three people and a bot, without a model or a key: the model's answers are scripted; the process, the\n"
    "engine, the store, the memory, the tools and the kill are real, and what is shown was observed."
)
LEFT, RIGHT = "what people see", "what the engine did, and what the model was sent"
HELD = "Every check held. Now talk with a model: palaver chat"
FAILED = "Some checks did not hold, which is a bug in Palaver."
WIDE = 96  # columns of a terminal from which notes are beside the conversation
LONGEST = 100  # characters of arguments and results of tools
COLOURS = {"Ann": "cyan", "Bo": "magenta", "Cy": "yellow", BOT.name: "bold green"}


class Screen(Protocol):
    def show(self, observation: Observation) -> None: ...

    def close(self) -> None:
        """End what is being shown; called in any case."""
        ...

    def end(self, held: bool) -> None:
        """Say whether all checks held."""
        ...


def notes_of(observation: Observation) -> list[str]:
    """Return what an observation says about the engine; further lines are indented."""
    match observation:
        case Learned(about=about, text=text, sources=sources):
            return [f"learned of {about}: {text}", *(f"  from {name}: “{said}”" for name, said in sources.items())]
        case PromptSent(step=0, layers=layers, remembered=remembered, end=end):
            tokens = " · ".join(f"{name} {count}" for name, count in layers.items())
            facts = [f"  remembered of {fact}" for fact in remembered]
            return [f"sent to the model: {sum(layers.values())} tokens", f"  {tokens}", *facts, f"  … “{end}”"]
        case PromptSent(step=step, layers=layers, end=end):
            return [f"sent in step {step}: {sum(layers.values())} tokens … {end}"]
        case ToolRan(name=name, args=args, result=result):
            given = ", ".join(f"{key}={_short(value)}" for key, value in args.items())
            return [f"tool {name}({given})", f"  → {_short(result)}"]
        case TaskPlanned(due_at=due_at):
            return [f"stored: a task, due at {due_at:%H:%M:%S}"]
        case Killed(open_runs=runs, answers=answers):
            return [f"in the store: {runs} open run with its prompt, {answers} answers"]
        case Resumed(run_id=run_id):
            return [f"resumes run {run_id[:8]} from its journal"]
    return []


def _short(value: object) -> str:
    text = json.encode(value).decode()
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
            self._write(f"      {note}")

    def close(self) -> None:
        pass

    def end(self, held: bool) -> None:
        self._write(f"\n{HELD if held else FAILED}")

    def _line(self, observation: Observation) -> None:
        if line := line_of(observation):
            self._write(f"  {line[0]}{':' if line[0].isalpha() else ''} {line[1]}".replace("   ", "  "))


class Row(Struct, kw_only=True):
    """What people see, and the notes beside it."""

    observation: Observation | None = None
    notes: list[str] = []


class TerminalScreen:
    """Two columns, or one on a narrow terminal; a scene is redrawn until the next one begins.

    Where the console is no terminal, as in a recording, a scene is printed when it has ended.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: list[Row] = []
        self._live: Live | None = None
        console.print(Text(INTRODUCTION.replace("\n", " "), style="dim"))
        if self._is_wide:
            console.print()
            console.print(self._table([(Text(LEFT, style="dim italic"), Text(RIGHT, style="dim italic"))]))

    def show(self, observation: Observation) -> None:
        if isinstance(observation, Scene):
            self._begin(observation.title)
            return
        if line_of(observation) is not None:
            self._add(observation)
        if notes := notes_of(observation):
            self._rows = self._rows or [Row()]
            self._rows[-1].notes.extend(notes)
        if self._live:
            self._live.update(self._scene(), refresh=True)

    def close(self) -> None:
        if self._live:
            self._live.stop()
        elif self._rows:
            self._console.print(self._scene())
        self._live, self._rows = None, []

    def end(self, held: bool) -> None:
        self._console.print()
        self._console.print(Text(HELD if held else FAILED, style="bold green" if held else "bold red"))

    @property
    def _is_wide(self) -> bool:
        return self._console.width >= WIDE

    def _begin(self, title: str) -> None:
        self.close()
        self._console.print()
        self._console.print(Text(title, style="bold"))
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def _add(self, observation: Observation) -> None:
        """Add a row, or replace the draft that the observation continues."""
        last = self._rows[-1].observation if self._rows else None
        is_next = isinstance(last, Drafted) and isinstance(observation, Drafted | Said)
        if is_next and getattr(observation, "message_id", None) == getattr(last, "message_id", ""):
            self._rows[-1].observation = observation
        else:
            self._rows.append(Row(observation=observation))

    def _scene(self) -> RenderableType:
        cells = [(_styled(row.observation), _notes(row.notes)) for row in self._rows]
        if self._is_wide:
            return self._table(cells)
        parts: list[RenderableType] = []
        for line, notes in cells:
            parts += [line] * bool(line) + [Padding(notes, (0, 0, 0, 6))] * bool(notes)
        return Group(*parts)

    def _table(self, rows: Sequence[tuple[Text, Text]]) -> Table:
        table = Table(box=box.MINIMAL, show_header=False, show_edge=False, expand=True, border_style="dim")
        table.add_column(ratio=1)
        table.add_column(ratio=1)
        for row in rows:
            table.add_row(*row)
        return table


def _styled(observation: Observation | None) -> Text:
    line = line_of(observation) if observation else None
    if line is None:
        return Text()
    who, what = line
    match observation:
        case Killed():
            return Text(what, style="bold red")
        case Started():
            return Text(what, style="dim")
        case Check(held=held):
            return Text.assemble((f"{who} ", "bold green" if held else "bold red"), what)
    return Text.assemble((f"{who}: ", COLOURS.get(who, "")), what)


def _notes(notes: Sequence[str]) -> Text:
    return Text("\n".join(notes), style="dim")
