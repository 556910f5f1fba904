"""The bot of a config for a test: its persona, tools, limits and memory, with a fake model and a fake platform."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from palaver.app import open_bot
from palaver.config import load_config
from palaver.engine.background import EngineClock
from palaver.engine.engine import Engine
from palaver.models.base import Model
from palaver.platform import Platform

IN_TESTS = {"PALAVER_STORE": ":memory:", "PALAVER_BEHAVIOR_DEBOUNCE": "0"}


@asynccontextmanager
async def bot_engine(
    config: str | Path,
    model: Model | Sequence[Model],
    platform: Platform,
    *,
    clock: EngineClock | None = None,
    environment: Mapping[str, str] = {},
) -> AsyncIterator[Engine]:
    """Run the bot of a `palaver.toml` on *platform*, with *model* in place of its models.

    Its store is in memory and its debounce is 0. *environment* has the variables that the bot sees, and no others.
    Facts are learned by patterns, also if the config names a model for that.
    """
    variables = {**IN_TESTS, **environment}
    models = model if isinstance(model, Sequence) else [model]
    file = load_config(Path(config), variables)
    async with open_bot(file, variables, models=models, platforms=[platform], clock=clock) as engine, engine:
        yield engine
