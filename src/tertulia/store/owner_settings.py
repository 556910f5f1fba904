"""Settings that owners changed by commands, one row for each."""

from collections.abc import Sequence
from datetime import datetime

from tertulia.engine.store_protocols import OwnerSetting
from tertulia.store.database import Database
from tertulia.store.encoding import SETTING_VALUE, dumps
from tertulia.store.threads import Repository, reading, writing
from tertulia.timezones import utc


class SqlOwnerSettings(Repository):
    """Implements `engine.store_protocols.OwnerSettingStore`."""

    @reading
    def listed(self, database: Database) -> Sequence[OwnerSetting]:
        return [
            OwnerSetting(
                name=name,
                value=SETTING_VALUE.loads(value),
                replaced=SETTING_VALUE.loads(replaced),
                at=datetime.fromisoformat(at),
            )
            for name, value, replaced, at in database.all(
                "SELECT name, value, replaced, at FROM owner_settings ORDER BY id"
            )
        ]

    @writing
    def put(self, database: Database, setting: OwnerSetting) -> None:
        """Store a setting in place of an earlier one."""
        database.run(
            """INSERT INTO owner_settings (name, value, replaced, at) VALUES (:name, :value, :replaced, :at)
                ON CONFLICT (name)
                DO UPDATE SET value = excluded.value, replaced = excluded.replaced, at = excluded.at""",
            name=setting.name,
            value=dumps(setting.value),
            replaced=dumps(setting.replaced),
            at=utc(setting.at).isoformat(),
        )

    async def remove(self, setting: OwnerSetting) -> None:
        delete, at = "DELETE FROM owner_settings WHERE name = :name AND at = :at", utc(setting.at).isoformat()
        await self._writer.run(lambda database: database.run(delete, name=setting.name, at=at))
