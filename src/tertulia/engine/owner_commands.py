"""Owner commands: what the owners of a bot may ask of it, as `/block` and `/usage`."""

import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from msgspec.structs import replace

from tertulia.context.log import with_current_quote
from tertulia.engine.languages.lines import Lines
from tertulia.engine.limits import CurrentLimits, Limits, Spend
from tertulia.engine.owner_settings import OwnerSettings
from tertulia.engine.shared import Shared
from tertulia.engine.store_protocols import Command, SettingValue
from tertulia.errors import InvalidValue
from tertulia.messages import Author
from tertulia.models.prices import price_of
from tertulia.tasks.due_times import format_minute, parse_moment

USAGE_DAYS = 7
RESET = "-"  # takes back the value of the config

OwnerHandler = Callable[[Command, Lines], Awaitable[tuple[str, ...]]]


class OwnerCommands:
    """Carries out the commands of owners."""

    def __init__(self, shared: Shared, settings: OwnerSettings) -> None:
        self._shared, self._identity = shared, shared.identity
        self._settings = settings
        self._started_at = shared.now()
        self._anywhere: Mapping[str, OwnerHandler] = {"block": self._block, "unblock": self._unblock}
        self._in_direct_chats: Mapping[str, OwnerHandler] = {
            **self._anywhere,
            "limit": self._limit,
            "persona": self._persona,
            "stats": self._stats,
            "usage": self._usage,
        }

    def handler(self, command: Command) -> OwnerHandler | None:
        """Return what carries a command out; None if it is no command of owners there, or not by one of them."""
        message = command.message
        if not self._identity.is_owner(message.place, message.author):
            return None
        known = self._in_direct_chats if message.place.kind == "direct" else self._anywhere
        return known.get(command.name)

    async def _block(self, command: Command, lines: Lines) -> tuple[str, ...]:
        message = command.message
        words, until = self._split_end(command.argument)
        author_id = await self._named_author(command, words)
        if not author_id:
            return (lines.block_whom.format(command=command.name),)
        author = Author(id=author_id, name="")
        if author_id == self._identity.author_on(message.place.platform).id or self._identity.is_owner(
            message.place, author
        ):
            return (lines.block_nobody,)
        service, settings = message.place.author_namespace, self._shared.store.place_settings
        is_known = await settings.block(platform=service, author_id=author_id, at=self._shared.now(), until=until)
        blocked = lines.blocked.format(id=author_id)
        if until:
            blocked = lines.blocked_until.format(id=author_id, moment=format_minute(until, self._shared.zone))
        return (blocked, *([] if is_known else [lines.unknown_person]))

    async def _unblock(self, command: Command, lines: Lines) -> tuple[str, ...]:
        if not (author_id := await self._named_author(command, command.argument.strip())):
            return (lines.block_whom.format(command=command.name),)
        service, settings = command.message.place.author_namespace, self._shared.store.place_settings
        was_blocked = await settings.unblock(platform=service, author_id=author_id)
        said = (lines.unblocked if was_blocked else lines.not_blocked).format(id=author_id)
        return (said, *([lines.unknown_person] if was_blocked is None else []))

    def _split_end(self, argument: str) -> tuple[str, datetime | None]:
        """Split `123 1h` or `1h` into the id, which may be empty, and the moment at which a block ends."""
        words = argument.split()
        for count in (0, 1):
            with suppress(InvalidValue):
                return " ".join(words[:count]), parse_moment(
                    " ".join(words[count:]), self._shared.now(), self._shared.zone
                )
        return argument.strip(), None

    async def _named_author(self, command: Command, given: str) -> str:
        """Return the id that a command names, else that of the author it replies to; empty if there is neither."""
        if given:
            return given.removeprefix(f"{command.message.place.author_namespace}:") if " " not in given else ""
        quote = (await with_current_quote(self._shared.store.log, command.message)).reply_to
        return quote.author.id if quote and quote.author else ""

    async def _limit(self, command: Command, lines: Lines) -> tuple[str, ...]:
        given = command.argument.strip()
        try:
            if given == RESET:
                await self._settings.reset("limit")
            elif given:
                await self._settings.change("limit", _parse_limit(given, self._shared.limits.value))
        except (ValueError, InvalidValue):
            return (lines.limit_how,)
        return _limits_line(self._shared.limits, lines), *self._until_reset(command, lines)

    async def _persona(self, command: Command, lines: Lines) -> tuple[str, ...]:
        given = command.argument.strip()
        if given and given != RESET:
            await self._settings.change("persona", {"text": given})
            return self._until_reset(command, lines)
        if given:
            await self._settings.reset("persona")
        return self._identity.persona.text or lines.no_persona, *self._until_reset(command, lines)

    def _until_reset(self, command: Command, lines: Lines) -> tuple[str, ...]:
        """Return the line which says that an owner's value is in use, if it is."""
        is_changed = self._settings.is_changed(command.name)
        return (lines.until_reset.format(command=command.name),) if is_changed else ()

    async def _stats(self, _: Command, lines: Lines) -> tuple[str, ...]:
        counts = await self._shared.store.count_rows()
        numbers = {name: f"{counts[name]:,}" for name in ("messages", "runs", "replies", "places")}
        return (lines.stats.format(**numbers, moment=format_minute(self._started_at, self._shared.zone)),)

    async def _usage(self, _: Command, lines: Lines) -> tuple[str, ...]:
        since = self._shared.now().astimezone(UTC).date() - timedelta(days=USAGE_DAYS - 1)
        sums: dict[tuple[date, str], Spend] = {}
        for row in await self._shared.store.usage.listed(since):
            spent, tokens = sums.get((row.day, row.model), Spend()), row.input + row.output + row.thought
            sums[row.day, row.model] = Spend(tokens=spent.tokens + tokens, money=spent.money + row.money)
        rows = [
            lines.usage.format(day=day, model=model, tokens=f"{spent.tokens:,}", money=self._cost(model, spent))
            for (day, model), spent in sorted(sums.items())
        ]
        return tuple(rows) or (lines.no_usage,)

    def _cost(self, model: str, spent: Spend) -> str:
        return f"${spent.money:.4f}" if spent.money or price_of(model, self._shared.behavior.prices) else "?"


def _parse_limit(text: str, limits: Limits) -> SettingValue:
    """Return the fields of limits that `10 60` means; raise `ValueError` or `InvalidValue` if it means none."""
    messages, *rest = text.split()
    seconds = float(rest[0]) if rest else limits.seconds
    if len(rest) > 1 or not math.isfinite(seconds):
        raise ValueError(text)
    parsed = replace(limits, messages=int(messages), seconds=seconds)
    return {"messages": parsed.messages, "seconds": parsed.seconds}


def _limits_line(limits: CurrentLimits, lines: Lines) -> str:
    return lines.limits.format(messages=limits.value.messages, seconds=f"{limits.value.seconds:g}")
