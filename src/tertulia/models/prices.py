"""Prices of models, in US dollars per million tokens. Pure."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from tertulia.models.base import Usage

_VERSION = re.compile(r"(-preview|-latest|-exp|-\d{3,8}|-\d{4}-\d{2}-\d{2}|-\d{2}-\d{4})+$")


class Price(Struct, frozen=True, kw_only=True):
    input: float
    output: float  # thoughts have the same price
    cached: float | None = None  # of cached input; None: the same as `input`


Prices = Mapping[str, Price]

# As listed by the services in November 2026 (Gemini, gpt-6) and September 2026 (OpenAI), for prompts of usual length.
# Of an announced and a current price the higher one is here: a spend cap must hold when the new price comes into force.
PRICES: Prices = MappingProxyType(
    {
        "gemini-4-argon": Price(input=4.0, cached=0.20, output=20.0),
        **dict.fromkeys(
            ("gemini-3.8-flash", "gemini-3.7-flash", "gemini-3.6-flash"), Price(input=1.50, cached=0.15, output=7.50)
        ),
        "gemini-3.5-flash": Price(input=1.50, cached=0.15, output=9.0),
        "gemini-3.5-flash-lite": Price(input=0.30, cached=0.03, output=2.50),
        "gemini-3.1-flash-lite": Price(input=0.25, cached=0.025, output=1.50),
        "gemini-3.1-pro": Price(input=2.0, cached=0.20, output=12.0),
        "gemini-3-flash": Price(input=0.50, cached=0.05, output=3.0),
        "gemini-2.5-pro": Price(input=1.25, cached=0.125, output=10.0),
        "gemini-2.5-flash": Price(input=0.30, cached=0.03, output=2.50),
        "gemini-2.5-flash-lite": Price(input=0.10, cached=0.01, output=0.40),
        "gpt-6.1-terra": Price(input=1.0, cached=0.05, output=5.0),
        **dict.fromkeys(("gpt-6.1-sol", "gpt-6-sol"), Price(input=2.0, output=10.0)),
        "gpt-6-luna": Price(input=0.10, cached=0.01, output=0.50),
        "gpt-6-astra": Price(input=10.0, cached=1.0, output=50.0),
        **dict.fromkeys(("gpt-5.6", "gpt-5.6-sol"), Price(input=4.0, cached=0.40, output=20.0)),
        "gpt-5.6-terra": Price(input=2.0, cached=0.20, output=12.0),
        "gpt-5.6-luna": Price(input=0.20, cached=0.02, output=1.20),
        "gpt-5.5": Price(input=5.0, cached=0.50, output=30.0),
        "gpt-5.4": Price(input=2.50, cached=0.25, output=15.0),
        "gpt-5.4-mini": Price(input=0.75, cached=0.075, output=4.50),
        "gpt-5.2": Price(input=1.75, output=14.0),
        "gpt-5.1": Price(input=1.25, cached=0.125, output=10.0),
        "gpt-5": Price(input=1.25, cached=0.125, output=10.0),
        "gpt-5-mini": Price(input=0.25, cached=0.025, output=2.0),
        "gpt-5-nano": Price(input=0.05, cached=0.005, output=0.40),
        "gpt-4.1": Price(input=2.0, cached=0.50, output=8.0),
        "gpt-4.1-mini": Price(input=0.40, cached=0.10, output=1.60),
        "gpt-4.1-nano": Price(input=0.10, cached=0.025, output=0.40),
        "gpt-4o": Price(input=2.50, cached=1.25, output=10.0),
        "gpt-4o-mini": Price(input=0.15, cached=0.075, output=0.60),
        **dict.fromkeys(("smollm2", "qwen"), Price(input=0.0, output=0.0)),  # in this process
    }
)


def price_of(model: str, prices: Prices) -> Price | None:
    """Return the price of a model, by its full name or without its version suffix; None if it is unknown."""
    name = model.removeprefix("models/")
    return prices.get(name) or prices.get(_VERSION.sub("", name))


def cost(usage: Usage, price: Price) -> float:
    """Return the cost of a response, in US dollars."""
    cached = price.input if price.cached is None else price.cached
    read = (usage.input - usage.cached) * price.input + usage.cached * cached
    return (read + (usage.output + usage.thought) * price.output) / 1_000_000
