"""Every refusal is used, and stands on the page of the rules with where its words come from."""

from pathlib import Path

from sim.telegram.rules_page import PAGE, with_table
from tertulia.sim import telegram
from tertulia.sim.telegram.refusals import REFUSALS


def test_the_page_has_every_refusal() -> None:
    page = PAGE.read_text("utf-8")

    assert with_table(page) == page, "run: PYTHONPATH=tests python tests/sim/telegram/rules_page.py"


def test_no_refusal_is_only_on_paper() -> None:
    folder = Path(str(telegram.__file__)).parent
    source = "".join(file.read_text("utf-8") for file in folder.glob("*.py") if file.name != "refusals.py")

    assert [rule for rule in REFUSALS if f'"{rule}"' not in source and rule != "flood"] == []
