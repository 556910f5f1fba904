"""The bot of a config for a test: its persona, tools, limits and memory, with a fake model and a fake platform."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tertulia.app import open_bot
from tertulia.config import load_config
from tertulia.engine.background import EngineClock
from tertulia.engine.engine import Engine
from tertulia.models.base import Model
from tertulia.platform import Platform

IN_TESTS = {"TERTULIA_STORE": ":memory:", "TERTULIA_BEHAVIOR_DEBOUNCE": "0"}


@asynccontextmanager
async def bot_engine(
    config: str | Path,
    model: Model | Sequence[Model],
    platform: Platform,
    *,
    clock: EngineClock | None = None,
    environment: Mapping[str, str] = {},
) -> AsyncIterator[Engine]:
    """Run the bot of a `tertulia.toml` on *platform*, with *model* in place of its models.

    Its store is in memory and its debounce is 0. *environment* has the variables that the bot sees, and no others.
    Facts are learned by patterns, also if the config names a model for that.
    """
    variables = {**IN_TESTS, **environment}
    models = model if isinstance(model, Sequence) else [model]
    file = load_config(Path(config), variables)
    async with open_bot(file, variables, models=models, platforms=[platform], clock=clock) as engine, engine:
        yield engine
