"""Measures every pattern and function that reads foreign text, on text that is made to be slow.

    .venv/bin/python -m bench.hostile [--json] [--only NAME] [--rows 12]

The patterns are found by themselves: in all modules of the package, in their values, and in calls of `re`. Each is run
the way the package runs it, over texts derived from it (`hostile_texts.py`) of 10 kB. The slowest of these, and those
whose time grows fastest from 2.5 kB on, are run at 100 kB, and the worst of all at 1 MB. `growth` is the power of the
length that the time grows with between the last two: 1 is linear, 2 is the square. What takes longer than the limit is
stopped, and shown as such. Where callers pass no more than so many characters, no more are given.
"""

import argparse
import ast
import importlib
import json
import math
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import FrameType, MappingProxyType, ModuleType

import msgspec
from bench.hostile_texts import KNOWN, Recipe, recipes
from msgspec import Struct

import tertulia
from tertulia.context.selection import select_messages
from tertulia.context.values import Context
from tertulia.formats import compact, meta
from tertulia.formats.context_block import block
from tertulia.formats.single import single
from tertulia.markdown import Fences
from tertulia.memory.patterns import find_facts, grammar
from tertulia.memory.retrieval.index import index_entry, parse_query
from tertulia.memory.sentences import own_sentences
from tertulia.memory.values import MessageText
from tertulia.memory.verify.claims import unfit_reason
from tertulia.memory.verify.clauses import subject_clauses
from tertulia.messages import Author, Message, Place, Quote
from tertulia.parts import Text
from tertulia.profiles import headers, layered, native
from tertulia.prompt import escape
from tertulia.run.cleaner import clean
from tertulia.tasks.blocks import parse
from tertulia.tokens import ESTIMATOR
from tertulia.tools.search import plain_text

SIZES = (10_000, 100_000, 1_000_000)
SMALL = 2_500  # where growth is first looked at
LIMITS = (1.0, 1.0, 10.0)  # seconds of CPU for one text of each size
SLOPE = 1.3  # a growth above this is shown as steep, where the time is not below the noise
NOISE = 0.005  # seconds
LEFT_OUT = ("tertulia.sim", "tertulia.cli", "tertulia.__main__")  # they read what their own user writes
BOUNDS = {  # characters that callers pass at most
    "tools.calculator": 2_000,
    "tasks.due_times": 100,
    "tools.search": 4_000,
    "memory.verify.markers": 4_000,
    "memory.verify.clauses": 4_000,
    "memory.sentences": 4_000,
    "prompt.meta._COLONS": 64,
    "prompt.quoting._POSES": 64,
}

Read = Callable[[str], object]


class Subject(Struct, frozen=True):
    name: str
    read: Read
    texts: tuple[Recipe, ...]
    bound: int = SIZES[-1]


class Row(Struct, frozen=True):
    name: str
    text: str
    seconds: tuple[float, ...]  # infinite where it was stopped

    @property
    def growth(self) -> float:
        if math.inf in self.seconds:
            return math.inf
        return math.log10(max(self.seconds[-1], 1e-9) / max(self.seconds[-2], 1e-9))  # ten times as long

    @property
    def steep(self) -> bool:
        return self.growth > SLOPE and self.seconds[-2] > NOISE


class Stopped(Exception):
    pass


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(tertulia.__path__, "tertulia."):
        if found.name.startswith(LEFT_OUT):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError as error:
            print(f"{found.name} is left out: {error}", file=sys.stderr)


def patterns(module: ModuleType, source: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Find all patterns of *module* by name: its values, patterns inside them, and literals in calls of `re`."""
    seen: set[int] = set()
    values = {**vars(module), "grammar": grammar()} if module.__name__.endswith("memory.patterns") else vars(module)
    for name, value in values.items():
        if name.startswith("__"):
            continue
        for number, pattern in enumerate(_held(value, seen, depth=4)):
            yield f"{module.__name__}.{name}" + (f"[{number}]" if number else ""), pattern
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        of_re = isinstance(call.func.value, ast.Name) and call.func.value.id == "re" and call.func.attr != "compile"
        first = call.args[0]
        if of_re and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield f"{module.__name__}:{call.lineno} {call.func.attr}", re.compile(first.value)


def _held(value: object, seen: set[int], *, depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
        return
    if not depth or id(value) in seen or isinstance(value, str | bytes | int | float | ModuleType):
        return
    inner: Iterable[object] = ()
    if isinstance(value, dict | MappingProxyType):
        inner = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        inner = value
    elif isinstance(value, msgspec.Struct):
        inner = (getattr(value, field) for field in value.__struct_fields__)
    elif isinstance(value, type) and value.__module__.startswith("tertulia"):
        inner = tuple(vars(value).values())
    seen.add(id(value))
    for one in inner:
        yield from _held(one, seen, depth=depth - 1)


def reading(name: str, pattern: re.Pattern[str], sources: str) -> Read:
    """Return *pattern* as the package uses it: matched at one position, or searched over a text."""
    short = name.rpartition(".")[2]
    used = {short.partition(" ")[2]} if " " in short else set(re.findall(rf"\b{re.escape(short)}\.(\w+)\(", sources))
    if used and used <= {"match", "fullmatch"}:
        return lambda text: [getattr(pattern, way)(text) for way in used]
    return lambda text: sum(1 for _ in pattern.finditer(text))


def found_patterns() -> list[Subject]:
    subjects: dict[str, Subject] = {}
    loaded = [(module, Path(str(module.__file__)).read_text(encoding="utf-8")) for module in modules()]
    everything = "\n".join(source for _, source in loaded)
    for module, source in loaded:
        for name, pattern in patterns(module, source):
            texts = tuple(dict.fromkeys((*recipes(pattern), *KNOWN)))
            short = name.removeprefix("tertulia.")
            bound = next((bound for start, bound in BOUNDS.items() if short.startswith(start)), SIZES[-1])
            subject = Subject(short, reading(name, pattern, everything), texts, bound)
            subjects.setdefault(f"{pattern.flags} {pattern.pattern}", subject)
    return list(subjects.values())


def functions() -> list[Subject]:
    """Return the functions that foreign text goes through, from the platform on."""
    place = Place(platform="bench", id="1", kind="group")
    alice, now = Author(id="u1", name="Alice"), datetime.now(UTC)

    def message(text: str) -> Message:
        return Message(id="m1", place=place, author=alice, sent_at=now, parts=(Text(text=text),))

    def context(text: str) -> Context:
        quote = Quote(message_id="m0", author=Author(id="u2", name=text[:100_000]), parts=(Text(text=text),))
        target = msgspec.structs.replace(message(text), reply_to=quote)
        return Context(target=target, now=now, place=place, delimiter="7f3a9c2e51b0")

    def fenced(text: str) -> None:
        fences, at = Fences(), 0
        for line in text.splitlines(keepends=True):
            fences.covers(text, at, ended=True)
            fences.add_line(line)
            at += len(line)

    reads: dict[str, Read] = {
        "escape.markup": escape.markup,
        "escape.without_delimiter": lambda text: escape.without_delimiter(text, "7f3a9c2e51b0"),
        "escape.fold": escape.fold,
        "escape.inline": escape.inline,
        "escape.paragraph": escape.paragraph,
        "escape.header_name": escape.header_name,
        "escape.skeleton": escape.skeleton,
        "profile layered": lambda text: layered(context(text)),
        "profile native": lambda text: native(context(text)),
        "profile block": lambda text: block(context(text)),
        "profile headers": lambda text: headers(context(text)),
        "profile single": lambda text: single(context(text)),
        "choosing": lambda text: select_messages([message(text)] * 8, message(text), most=4),
        "task blocks": parse,
        "fences": fenced,
        "cleaning a reply": lambda text: clean(text, delimiter="7f3a9c2e51b0"),
        "facts by patterns": lambda text: find_facts(message(text)),
        "sentences": own_sentences,
        "clauses": subject_clauses,
        "guards": unfit_reason,
        "search question": lambda text: parse_query(text, names={}, now=date(2026, 1, 1)),
        "search entry": lambda text: index_entry(MessageText(number=0, name=0, author="a", at=now, text=text)),
        "web search words": plain_text,
        "import compact": compact.read_compact,
        "import headers": meta.read_header,
        "tokens": ESTIMATOR.text,
    }
    return [Subject(name, read, KNOWN) for name, read in reads.items()]


def measured(subject: Subject) -> Row:
    """Measure *subject* on its slowest text, at all sizes."""

    def took(recipe: Recipe, size: int) -> float:
        limit = next(limit for most, limit in zip(SIZES, LIMITS, strict=True) if size <= most)
        return _seconds(subject.read, recipe.text(min(size, subject.bound)), limit)

    first = {recipe: took(recipe, SIZES[0]) for recipe in subject.texts}
    growing = {
        recipe: first[recipe] / max(took(recipe, SMALL), 1e-6) for recipe in subject.texts if first[recipe] > 5e-4
    }
    looked = {*sorted(first, key=first.__getitem__)[-3:], *sorted(growing, key=growing.__getitem__)[-3:]}
    second = {recipe: took(recipe, SIZES[1]) for recipe in looked}
    worst = max(second, key=second.__getitem__)
    third = took(worst, SIZES[2]) if second[worst] < math.inf else math.inf
    return Row(subject.name, str(worst), (first[worst], second[worst], third))


def _seconds(read: Read, text: str, limit: float) -> float:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGVTALRM, stop)
    begun = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        read(text)
    except Stopped:
        return math.inf
    except (ValueError, RecursionError):
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - begun


def table(title: str, rows: Sequence[Row], shown: int) -> str:
    steep = [row for row in rows if row.steep]
    lines = [f"{title}: {len(rows)}, steep: {len(steep)}", "", "| what | text | 10 kB | 100 kB | 1 MB | growth |",
             "|---|---|--:|--:|--:|--:|"]  # fmt: skip
    for row in sorted(rows, key=lambda row: (not row.steep, -row.seconds[-1]))[: max(shown, len(steep))]:
        cells = " | ".join(_ms(seconds) for seconds in row.seconds)
        lines.append(f"| {row.name} | `{row.text}` | {cells} | {row.growth:.2f} |")
    return "\n".join(lines)


def _ms(seconds: float) -> str:
    return "stopped" if seconds == math.inf else f"{seconds * 1000:.2f} ms"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    asked.add_argument("--json", action="store_true", help="machine-readable")
    asked.add_argument("--only", default="", help="what has this in its name")
    asked.add_argument("--rows", type=int, default=12, help="rows of each table; steep ones are all shown")
    given = asked.parse_args()
    tables = {
        kind: [measured(subject) for subject in found if given.only in subject.name]
        for kind, found in (("functions", functions()), ("patterns", found_patterns()))
    }
    if given.json:
        print(json.dumps(msgspec.to_builtins(tables)))
        return
    print("\n\n".join(table(kind, rows, given.rows) for kind, rows in tables.items()))


if __name__ == "__main__":
    main()
