"""Settings that owners changed by commands: stored, and in use until the config changes them too."""

import logging
from collections.abc import Iterable, Mapping
from functools import partial

from msgspec.structs import replace

from tertulia.context.values import Persona
from tertulia.engine.background import BackgroundTasks, retry_forever
from tertulia.engine.limits import Limits
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import OwnerSetting, SettingValue

log = logging.getLogger(__name__)


def configured_values(persona: Persona, limits: Limits) -> Mapping[str, SettingValue]:
    """Return the value that a config has for each setting."""
    return {
        "persona": {"text": persona.text},
        "limit": {"messages": limits.messages, "seconds": limits.seconds},
    }


def in_force(settings: Iterable[OwnerSetting], persona: Persona, limits: Limits) -> list[OwnerSetting]:
    """Return the settings that hold: those whose value in the config is still the one that they replaced."""
    configured = configured_values(persona, limits)
    return [one for one in settings if one.replaced == configured.get(one.name)]


class OwnerSettings:
    """Sets the persona and the limits of an engine: those of the config, with what owners changed in them."""

    def __init__(self, shared: Shared) -> None:
        self._store = shared.store.owner_settings
        self._identity = shared.identity
        self._limits = shared.limits
        self._now = shared.now
        self._configured = self._identity.persona, self._limits.value
        self._settings: dict[str, OwnerSetting] = {}
        self._background = BackgroundTasks()

    async def load(self) -> None:
        """Apply what is stored. Without owners nobody could take it back: then the config holds."""
        if self._identity.has_owners:
            self._settings = {one.name: one for one in await self._store.listed()}
            await self._remove(self._apply())

    def configure(self, *, persona: Persona | None = None, limits: Limits | None = None) -> None:
        """Take over a persona or limits of the config."""
        old_persona, old_limits = self._configured
        self._configured = persona or old_persona, limits or old_limits
        if ended := self._apply():
            self._background.start(self._remove(ended))

    def is_changed(self, name: str) -> bool:
        """Return whether an owner's value is in use."""
        return name in self._settings

    async def change(self, name: str, value: SettingValue) -> None:
        """Store a value and apply it."""
        replaced = configured_values(*self._configured)[name]
        setting = OwnerSetting(name=name, value=value, replaced=replaced, at=self._now())
        await self._store.put(setting)
        self._settings[name] = setting
        await self._remove(self._apply())  # the config may have changed meanwhile

    async def reset(self, name: str) -> None:
        """Take back the value of the config."""
        if setting := self._settings.get(name):
            await self._store.remove(setting)
            self._settings.pop(name, None)
            await self._remove(self._apply())

    async def close(self) -> None:
        await self._background.stop()

    def _apply(self) -> list[OwnerSetting]:
        """Set the persona and the limits; return the settings that no longer hold, which are to be removed."""
        persona, limits = self._configured
        kept = {one.name: one for one in in_force(self._settings.values(), persona, limits)}
        ended = [one for one in self._settings.values() if one.name not in kept]
        for one in ended:
            log.info("%s: changed in the config since /%s of %s, which ends", one.name, one.name, one.at.date())
        self._settings = kept
        values = {name: one.value for name, one in kept.items()}
        self._identity.persona = replace(persona, **values.get("persona", {}))
        self._limits.value = replace(limits, **values.get("limit", {}))
        return ended

    async def _remove(self, settings: Iterable[OwnerSetting]) -> None:
        for setting in settings:
            await retry_forever(partial(self._store.remove, setting))
