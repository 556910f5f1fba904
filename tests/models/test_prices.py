import pytest

from tertulia.models.base import Usage
from tertulia.models.prices import PRICES, Price, cost, price_of

NAMES: list[tuple[str, str | None]] = [
    ("gpt-5", "gpt-5"),
    ("gpt-5-2025-08-07", "gpt-5"),
    ("gpt-5-mini", "gpt-5-mini"),
    ("gpt-5-pro", None),
    ("gpt-5.9", None),
    ("gemini-3-flash-preview", "gemini-3-flash"),
    ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
    ("models/gemini-2.5-flash-001", "gemini-2.5-flash"),
    ("gemini-2.5-flash-image", None),
    ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
    ("gemini-3.8-flash", "gemini-3.8-flash"),
    ("gpt-5.6-luna", "gpt-5.6-luna"),
    ("scripted", None),
]


@pytest.mark.parametrize(("model", "listed"), NAMES)
def test_a_price_is_found_by_the_name_without_its_version(model: str, listed: str | None) -> None:
    assert price_of(model, PRICES) == (PRICES[listed] if listed else None)


def test_cached_tokens_are_among_the_input_and_thoughts_cost_like_output() -> None:
    usage = Usage(input=1_000_000, cached=400_000, output=100_000, thought=50_000)

    assert cost(usage, Price(input=2.0, cached=0.5, output=10.0)) == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 1.5)
    assert cost(usage, Price(input=2.0, output=10.0)) == pytest.approx(2.0 + 1.5)
