"""Past conversations of a store on a changed bot, for tests that assert what it would say."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from msgspec.structs import replace

from tertulia.app import open_replayer
from tertulia.config import load_config, read_config
from tertulia.engine.replay.past_runs import REPLAYED, runs_to_replay
from tertulia.engine.replay.values import ChangedBot, ReplayedRun
from tertulia.engine.run_executor import as_models
from tertulia.errors import InvalidValue
from tertulia.models.base import Model
from tertulia.profiles import Build, Profile, profile_of
from tertulia.store import Store


async def replayed(
    store: Store | str | Path,
    place: str,
    model: Model | Sequence[Model],
    *,
    persona: str | None = None,
    profile: str | Profile | Build | None = None,
    config: str | Path | None = None,
    runs: int = REPLAYED,
) -> list[ReplayedRun]:
    """Return the last *runs* of a place as they were, and as they would be with *model* and what is changed.

    *place* is its id or its title. A bot may have the store. Options, limits and the rest of the persona are those of
    the *config*, by default of an empty one.
    """
    if not isinstance(store, Store):
        async with Store.open(str(store), beside=True) as opened:
            return await replayed(opened, place, model, persona=persona, profile=profile, config=config, runs=runs)
    file = load_config(Path(config), {}) if config else read_config("", {})
    found = [one for one in await store.place_settings.listed() if place in (one.id, one.title)]
    if len(found) != 1:
        raise InvalidValue(f"{len(found)} places of the store have the id or the title {place!r}")
    async with aclosing(await open_replayer(store, file, {})) as replayer:
        bot = ChangedBot(
            models=as_models(model),
            persona=None if persona is None else replace(replayer.persona, text=persona),
            profile=None if profile is None else profile_of(profile, file.config.context),
        )
        run_ids = await runs_to_replay(store, found[0], most=runs)
        return [one async for one in replayer.replay_runs(run_ids, bot)]
