"""Write the table of refusals in docs/telegram-rules.md: `PYTHONPATH=tests python tests/sim/telegram/rules_page.py`."""

from itertools import dropwhile
from pathlib import Path

from tertulia.sim.telegram.refusals import REFUSALS

PAGE = Path(__file__).parents[3] / "docs" / "telegram-rules.md"
START = "| rule | status | description | origin |\n|---|---|---|---|\n"
WIDEST = 72


def table() -> str:
    """Return the table; descriptions that are too long for a line are cut."""
    rows = []
    for rule, refusal in REFUSALS.items():
        words = refusal.text.partition(": ")[2] if refusal.code == 400 and ": " in refusal.text else refusal.text
        short = words if len(words) <= WIDEST else f"{words[:WIDEST].rstrip()} …"
        origin = "**unproven**" if refusal.origin == "documentation" else refusal.origin
        rows.append(f"| {rule} | {refusal.code} | {short} | {origin} |\n")
    return START + "".join(rows)


def with_table(page: str) -> str:
    """Return the page with the table as it should be."""
    head, _, rest = page.partition(START)
    tail = dropwhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True))
    return head + table() + "".join(tail)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
