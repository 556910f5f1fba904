"""Settings that owners changed by commands, one row for each."""

from collections.abc import Sequence

from msgspec.structs import replace

from tertulia.engine.store_protocols import OwnerSetting
from tertulia.store.database import Database
from tertulia.store.rows import Rows
from tertulia.store.threads import Repository, reading, writing
from tertulia.timezones import utc

_SETTINGS = Rows(OwnerSetting, "owner_settings", "name value replaced at")


class SqlOwnerSettings(Repository):
    """Implements `engine.store_protocols.OwnerSettingStore`."""

    @reading
    def listed(self, database: Database) -> Sequence[OwnerSetting]:
        return _SETTINGS.all(database, "ORDER BY id")

    @writing
    def put(self, database: Database, setting: OwnerSetting) -> None:
        _SETTINGS.upsert(database, "name", replace(setting, at=utc(setting.at)))

    @writing
    def remove(self, database: Database, setting: OwnerSetting) -> None:
        delete = "DELETE FROM owner_settings WHERE name = :name AND at = :at"
        database.run(delete, name=setting.name, at=utc(setting.at).isoformat())
