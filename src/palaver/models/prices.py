"""What tokens cost, as data: US dollars for a million of them, by the names of models. Pure."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from palaver.models.base import Usage

_VERSION = re.compile(r"(-preview|-latest|-exp|-\d{3,8}|-\d{4}-\d{2}-\d{2}|-\d{2}-\d{4})+$")


class Price(Struct, frozen=True, kw_only=True):
    input: float
    output: float  # thoughts are paid like it
    cached: float | None = None  # of the input; None: it costs like the rest


Prices = Mapping[str, Price]

# As the services listed them when this was written, for prompts of ordinary length. They change: `Conduct(prices=…)`.
PRICES: Prices = MappingProxyType(
    {
        "gemini-2.0-flash": Price(input=0.10, cached=0.025, output=0.40),
        "gemini-2.5-flash-lite": Price(input=0.10, cached=0.01, output=0.40),
        "gemini-2.5-flash": Price(input=0.30, cached=0.03, output=2.50),
        "gemini-2.5-pro": Price(input=1.25, cached=0.125, output=10.0),
        "gemini-3-flash": Price(input=0.50, cached=0.05, output=3.0),
        "gpt-4.1": Price(input=2.0, cached=0.50, output=8.0),
        "gpt-4.1-mini": Price(input=0.40, cached=0.10, output=1.60),
        "gpt-4o": Price(input=2.50, cached=1.25, output=10.0),
        "gpt-4o-mini": Price(input=0.15, cached=0.075, output=0.60),
        "gpt-5": Price(input=1.25, cached=0.125, output=10.0),
        "gpt-5-mini": Price(input=0.25, cached=0.025, output=2.0),
        "gpt-5.1": Price(input=1.25, cached=0.125, output=10.0),
        "gpt-5.2": Price(input=1.75, cached=0.175, output=14.0),
    }
)


def price_of(model: str, prices: Prices) -> Price | None:
    """The price of a model, by its whole name or without the words for a version; None where nobody knows it."""
    name = model.removeprefix("models/")
    return prices.get(name) or prices.get(_VERSION.sub("", name))


def cost(usage: Usage, price: Price) -> float:
    """In dollars."""
    cached = price.input if price.cached is None else price.cached
    read = (usage.input - usage.cached) * price.input + usage.cached * cached
    return (read + (usage.output + usage.thought) * price.output) / 1_000_000
