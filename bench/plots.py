"""Draw the four plots of docs/benchmarks.md from the measured figures in bench/figures.

    .venv/bin/python bench/plots.py [--to FOLDER]

Each file in bench/figures holds rows as the benchmark of that name prints them with --json.
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "bench" / "figures"
PLOTS = ROOT / "docs" / "plots"
WIDTH, MARGIN, LABELS, VALUES = 760, 20, 220, 70  # pixels: the plot, its edge, row labels, room for values
BAR, GAP, HEAD, FOOT = 16, 14, 92, 56
LIGHT = {"ground": "#ffffff", "text": "#1f2328", "note": "#59636e", "line": "#d1d9e0"}
DARK = {"ground": "#0d1117", "text": "#f0f6fc", "note": "#9198a1", "line": "#3d444d"}
LIGHT_SERIES, DARK_SERIES = ("#0969da", "#bc4c00", "#8250df", "#1a7f37"), ("#4493f8", "#db6d28", "#ab7df8", "#3fb950")

Rows = Sequence[Mapping[str, Any]]


class Bars(Struct, frozen=True, kw_only=True):
    """Grouped horizontal bars from 0 to *most*: for each row of *values* one bar a series."""

    title: str
    subtitle: str
    axis: str
    series: Sequence[str]
    values: Mapping[str, Sequence[float]]
    ticks: Sequence[float]
    form: str


class Lines(Struct, frozen=True, kw_only=True):
    """Lines through points (x, y) on two logarithmic axes, each with its name at its end."""

    title: str
    subtitle: str
    x_axis: str
    y_axis: str
    values: Mapping[str, Mapping[float, float]]
    y_ticks: Sequence[float]


def prefix_plot(rows: Rows) -> Bars:
    shares = {(row["data"], row["profile"], row["window"]): 100 * row["stable"] for row in rows}
    labels = {
        "tail": ("tail", "125..500"),
        "layered": ("layered", "125..500"),
        "tail, sliding window of 30": ("tail", "sliding 30"),
        "tail, sliding window of 100": ("tail", "sliding 100"),
        "headers": ("headers", "125..500"),
    }
    data = {"two people (LoCoMo)": "locomo-dev.json", "a group (IRC)": "irc-dev"}
    return Bars(
        title="How much of a request repeats the start of the previous one",
        subtitle="More is cheaper: repeated tokens cost the cache price. Windows of 125 to 500 messages unless named.",
        axis="share of all prompt tokens, %",
        series=list(data),
        values={label: [shares[name, *key] for name in data.values()] for label, key in labels.items()},
        ticks=(0, 20, 40, 60, 80, 100),
        form="{:.1f}",
    )


def chat_plot(rows: Rows) -> Lines:
    names = {
        "google-genai chat": "google-genai",
        "pydantic-ai agent": "pydantic-ai",
        "tertulia chat cold": "tertulia, first turn",
        "tertulia chat": "tertulia",
    }
    ms = {name: {row["n"]: row["ms"] for row in rows if row["name"] == key} for key, name in names.items()}
    return Lines(
        title="What one turn of a chat costs",
        subtitle="CPU time from the message to the history with its answer. Both axes are logarithmic.",
        x_axis="messages in the history",
        y_axis="ms of CPU",
        values=ms,
        y_ticks=(0.1, 1, 10, 100, 1000),
    )


def recall_plot(rows: Rows) -> Bars:
    names = {
        "hybrid, left out": "tertulia, words and vectors",
        "words, left out": "tertulia, words alone",
        "bm25": "BM25",
        "vectors": "vectors alone (MiniLM)",
    }
    keys = ("recall@5", "recall@10", "recall@20")
    found = {row["method"]: [row[key] for key in keys] for row in rows if row["category"] == "all"}
    return Bars(
        title="How much of the evidence a search finds",
        subtitle="1,018 questions about five conversations (LoCoMo). More is better.",
        axis="share of the messages that answer, among the first 5, 10 and 20 results",
        series=keys,
        values={name: found[method] for method, name in names.items()},
        ticks=(0, 0.2, 0.4, 0.6, 0.8, 1.0),
        form="{:.3f}",
    )


def media_plot(rows: Rows) -> Bars:
    return Bars(
        title="What a day of a photo group costs",
        subtitle="600 messages, 235 media, 60 answers. Dollars for the input of all requests, and for descriptions.",
        axis="dollars a day (gemini-3.8-flash)",
        series=("requests", "descriptions"),
        values={row["way"]: [row["input"], row["descriptions"]] for row in rows},
        ticks=(0, 0.5, 1.0, 1.5, 2.0),
        form="{:.2f}",
    )


def bars_svg(plot: Bars) -> str:
    left, right = MARGIN + LABELS, WIDTH - MARGIN - VALUES
    group = BAR * len(plot.series) + GAP
    bottom = HEAD + group * len(plot.values)
    scale = (right - left) / max(plot.ticks)
    body = [*_legend(plot.series, left)]
    for tick in plot.ticks:
        x = left + tick * scale
        body.append(_line(x, HEAD, x, bottom))
        body.append(_text(x, bottom + 18, f"{tick:g}", "note middle"))
    body.append(_text((left + right) / 2, bottom + 42, plot.axis, "note middle"))
    for row, (label, values) in enumerate(plot.values.items()):
        top = HEAD + row * group + GAP / 2
        body.append(_text(left - 10, top + BAR * len(values) / 2 + 5, label, "text end"))
        for number, value in enumerate(values):
            y = top + number * BAR
            body.append(
                f'<rect class="s{number}" x="{left}" y="{y:g}" width="{value * scale:.1f}" height="{BAR - 3}"/>'
            )
            body.append(_text(left + value * scale + 6, y + 11, plot.form.format(value), "note"))
    return _svg(plot.title, plot.subtitle, bottom + FOOT, body)


def lines_svg(plot: Lines) -> str:
    left, right, bottom = MARGIN + 60, WIDTH - MARGIN - 170, 420
    xs = sorted({x for points in plot.values.values() for x in points})

    def at_x(value: float) -> float:
        return left + (right - left) * math.log(value / xs[0]) / math.log(xs[-1] / xs[0])

    def at_y(value: float) -> float:
        least, most = plot.y_ticks[0], max(max(points.values()) for points in plot.values.values()) * 1.4
        return bottom - (bottom - HEAD) * math.log(value / least) / math.log(most / least)

    body = [_text(MARGIN, HEAD - 8, plot.y_axis, "note")]
    for tick in plot.y_ticks:
        body.append(_line(left, at_y(tick), right, at_y(tick)))
        body.append(_text(left - 10, at_y(tick) + 4, f"{tick:,g}", "note end"))
    for x in xs:
        body.append(_text(at_x(x), bottom + 20, f"{x:,g}", "note middle"))
    body.append(_text((left + right) / 2, bottom + 42, plot.x_axis, "note middle"))
    for number, (name, points) in enumerate(plot.values.items()):
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in sorted(points.items()))
        body.append(f'<polyline class="p{number}" points="{path}"/>')
        body += [f'<circle class="s{number}" cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="4"/>' for x, y in points.items()]
        x, y = max(points.items())
        body.append(_text(at_x(x) + 12, at_y(y) + 5, f"{name} {y:,g} ms", "text"))
    return _svg(plot.title, plot.subtitle, bottom + FOOT, body)


def _legend(series: Sequence[str], left: float) -> Iterator[str]:
    for number, name in enumerate(series):
        x = left + number * 170
        yield f'<rect class="s{number}" x="{x:g}" y="{HEAD - 27}" width="12" height="12"/>'
        yield _text(x + 18, HEAD - 16, name, "note")


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _svg(title: str, subtitle: str, height: float, body: Sequence[str]) -> str:
    head = (_text(MARGIN, 30, title, "text title"), _text(MARGIN, 52, subtitle, "note"))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        "<style>",
        *_colours(LIGHT, LIGHT_SERIES),
        ".title { font-size: 17px; font-weight: 600; }",
        ".middle { text-anchor: middle; } .end { text-anchor: end; }",
        "polyline { fill: none; stroke-width: 2.5; }",
        "@media (prefers-color-scheme: dark) {",
        *_colours(DARK, DARK_SERIES),
        "}",
        "</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height:g}" rx="8"/>',
    ]
    return "\n".join([*lines, *head, *body, "</svg>", ""])


def _colours(page: Mapping[str, str], series: Sequence[str]) -> Iterator[str]:
    yield " ".join(f".{name} {{ fill: {page[name]}; }}" for name in ("ground", "text", "note"))
    yield f"line {{ stroke: {page['line']}; }}"
    for number, colour in enumerate(series):
        yield f".s{number} {{ fill: {colour}; }} .p{number} {{ stroke: {colour}; }}"


def drawn() -> dict[str, str]:
    """The plots as SVG, by the name of their figures."""
    rows = {file.stem: json.loads(file.read_text("utf-8")) for file in FIGURES.glob("*.json")}
    return {
        "prefix": bars_svg(prefix_plot(rows["prefix"])),
        "chat": lines_svg(chat_plot(rows["chat"])),
        "recall": bars_svg(recall_plot(rows["recall"])),
        "media": bars_svg(media_plot(rows["media"])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=PLOTS, metavar="FOLDER", help="where the SVG files go")
    folder: Path = parser.parse_args().to
    for name, svg in drawn().items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
