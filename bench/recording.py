"""Record `tertulia demo` as an animated picture: run it at its usual pace, and write docs/demo.svg.

    .venv/bin/python bench/recording.py [--to FILE] [--fast]

Rich draws each scene; a line of it appears when it was complete in this run. Where nothing moves, the scene with the
kill is shown.
"""

import argparse
import asyncio
import io
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from tertulia.demo.screen import HELD, LEFT, RIGHT, SceneView, columns
from tertulia.demo.story import FAST, Tempo, play
from tertulia.demo.timeline import Killed, Observation, Scene

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "demo.svg"
COLUMNS = 104
HOLD = 5.0  # seconds for which the end of the last scene is shown
MARGIN, BAR = 16, 36  # pixels around the text; the bar of the window
GROUND, LINE, DOTS = "#0d1117", "#30363d", ("#ff5f57", "#febc2e", "#28c840")
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SCENE = "<g class='{unique_id} scene'>\n<style>{styles}</style>\n{matrix}\n</g>"
LINE_END = re.compile(r"<text [^>]*>\n</text>")
TEXT = re.compile(r'<text class="([^"]*)" x="([\d.]+)" y="([\d.]+)" ([^>]*?) ?clip-path="url\(#\w+-line-(\d+)\)">')

Lines = Sequence[tuple[str, str]]  # what is left and right of the middle


class Recorded(Struct, frozen=True, kw_only=True):
    """A scene, when it began, and its lines as they were at each moment."""

    title: str
    began: float
    view: SceneView
    moments: list[tuple[float, Lines]]
    is_ended: bool = False  # whether the demo has ended with it

    @property
    def is_still(self) -> bool:
        """Whether it is shown where nothing moves."""
        return any(isinstance(row.observation, Killed) for row in self.view.rows)


def record(pace: Tempo) -> tuple[list[Recorded], float]:
    """Run the demo; return its scenes and how long it took."""
    scenes: list[Recorded] = []
    began = time.monotonic()

    def show(observation: Observation) -> None:
        now = time.monotonic() - began
        if isinstance(observation, Scene):
            scenes.append(Recorded(title=observation.title, began=now, view=SceneView(), moments=[]))
            return
        scenes[-1].view.add(observation)
        scenes[-1].moments.append((now, lines_of(scenes[-1])))

    if not asyncio.run(play(show, pace)):
        sys.exit("the demo failed; nothing is written")
    seconds = time.monotonic() - began
    last = scenes[-1] = replace(scenes[-1], is_ended=True)
    last.moments.append((seconds, lines_of(last)))
    return scenes, seconds


def print_scene(scene: Recorded, console: Console) -> None:
    console.print(Text(scene.title, style="bold white"))
    if not scene.view.is_list:
        console.print(columns([(Text(LEFT, style="dim italic"), Text(RIGHT, style="dim italic"))]))
    console.print(scene.view)
    if scene.is_ended:
        console.print(Text(f"\n{HELD}", style="bold green"))


def lines_of(scene: Recorded) -> Lines:
    console = Console(file=io.StringIO(), record=True, width=COLUMNS)
    print_scene(scene, console)
    halves = COLUMNS // 2
    return [(line[:halves].rstrip(), line[halves:].rstrip()) for line in console.export_text().splitlines()]


def appearance(scene: Recorded, line: int, half: int) -> float:
    """Return when a half of a line was first as it is at the end, and stayed so."""
    last = scene.moments[-1][1][line][half]
    appeared = scene.began
    for (_, before), (now, lines) in zip([(0.0, []), *scene.moments], scene.moments, strict=False):
        is_new = line >= len(before) or before[line][half] != last
        if is_new and line < len(lines) and lines[line][half] == last:
            appeared = now
    return appeared


def draw_scene(scene: Recorded, number: int, end: float, whole: float) -> Iterator[str]:
    """Yield the text of a scene, and the rules that show it from its beginning to *end*, line by line."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, color_system="truecolor")
    print_scene(scene, console)
    name = f"s{number}"
    drawn = console.export_svg(code_format=SCENE, unique_id=name)
    times: dict[float, str] = {}

    def timed(found: re.Match[str]) -> str:
        style, x, y, rest, line = found.groups()
        half = int(float(x) >= 12.2 * (COLUMNS // 2))
        appears = round(appearance(scene, int(line), half), 2)
        rule = times.setdefault(appears, f"{name}t{len(times)}")
        return f'<text class="{style} {rule}" x="{x}" y="{y}" {rest}>'

    yield LINE_END.sub("\n", TEXT.sub(timed, drawn)).replace(
        " scene'", " scene still'" if scene.is_still else " scene'"
    )
    yield "<style>"
    yield rules(name, scene.began if number else 0.0, end, whole)
    for appears, rule in times.items():
        yield rules(rule, appears, end, whole)
    yield "</style>"


def rules(name: str, begin: float, end: float, whole: float) -> str:
    """Return the rules that show what has this class from *begin* to *end*."""
    shown = [(0.0, 0)] * (begin > 0) + [(begin, 1)] + [(end, 0)] * (end < whole)
    frames = "".join(f"{100 * at / whole:.2f}%{{opacity:{opacity}}}" for at, opacity in shown)
    return f"@keyframes {name}{{{frames}}}.{name}{{animation:{name} {whole:.1f}s step-end infinite}}"


def draw(scenes: Sequence[Recorded], seconds: float) -> str:
    """Return the picture."""
    whole = seconds + HOLD
    ends = [*(scene.began for scene in scenes[1:]), whole]
    rows = max(len(scene.moments[-1][1]) for scene in scenes)
    width, height = 12.2 * COLUMNS + 2 * MARGIN, 24.4 * rows + BAR + 2 * MARGIN
    dots = "".join(f"<circle cx='{20 + 22 * at}' cy='18' r='6' fill='{dot}'/>" for at, dot in enumerate(DOTS))
    parts = [part for number, scene in enumerate(scenes) for part in draw_scene(scene, number, ends[number], whole)]
    return "\n".join(
        [
            f"<svg viewBox='0 0 {width:g} {height:g}' xmlns='http://www.w3.org/2000/svg' role='img'>",
            "<title>tertulia demo: memory, a reminder, and a kill -9 in mid-answer</title>",
            f"<style>text{{font:20px {FONT};white-space:pre}}.scene{{opacity:0}}.still{{opacity:1}}"
            "@media (prefers-reduced-motion:reduce){*{animation:none!important}}</style>",
            f"<rect width='100%' height='100%' rx='10' fill='{GROUND}' stroke='{LINE}'/>{dots}",
            "<text x='50%' y='24' fill='#9198a1' text-anchor='middle'>tertulia demo</text>",
            f"<g transform='translate({MARGIN},{BAR + MARGIN})'>",
            *parts,
            "</g>\n</svg>\n",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--to", type=Path, default=PICTURE)
    parser.add_argument("--fast", action="store_true")
    given = parser.parse_args()
    picture = draw(*record(FAST if given.fast else Tempo()))
    given.to.write_text(re.sub(r" +$", "", picture, flags=re.MULTILINE), "utf-8")
    print(f"{given.to}: {len(picture):,} characters; {HELD}")


if __name__ == "__main__":
    main()
