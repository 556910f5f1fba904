"""Settings that owners changed by commands, one row for each."""

from collections.abc import Sequence
from datetime import datetime

from tertulia.engine.store_protocols import OwnerSetting
from tertulia.store.encoding import SETTING_VALUE, dumps
from tertulia.store.sqlite.connection import Database
from tertulia.store.threads import Repository
from tertulia.timezones import utc


class SqlOwnerSettings(Repository):
    """Implements `engine.store_protocols.OwnerSettingStore`."""

    async def listed(self) -> Sequence[OwnerSetting]:
        return await self._reader.run(_listed)

    async def put(self, setting: OwnerSetting) -> None:
        upsert = """INSERT INTO owner_settings (name, value, replaced, at) VALUES (?, ?, ?, ?) ON CONFLICT (name)
            DO UPDATE SET value = excluded.value, replaced = excluded.replaced, at = excluded.at"""
        row = (setting.name, dumps(setting.value), dumps(setting.replaced), utc(setting.at).isoformat())
        await self._writer.run(lambda database: database.execute(upsert, row) and None)

    async def remove(self, setting: OwnerSetting) -> None:
        row = (setting.name, utc(setting.at).isoformat())
        delete = "DELETE FROM owner_settings WHERE name = ? AND at = ?"
        await self._writer.run(lambda database: database.execute(delete, row) and None)


def _listed(database: Database) -> list[OwnerSetting]:
    select = "SELECT name, value, replaced, at FROM owner_settings ORDER BY id"
    return [
        OwnerSetting(
            name=name,
            value=SETTING_VALUE.loads(value),
            replaced=SETTING_VALUE.loads(replaced),
            at=datetime.fromisoformat(at),
        )
        for name, value, replaced, at in database.execute(select).fetchall()
    ]
