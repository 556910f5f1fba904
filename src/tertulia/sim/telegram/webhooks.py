"""Webhooks: updates are posted to the address that a bot names, until it answers with success."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import httpx2
import orjson
from msgspec import Struct

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.accounts import BotAccount
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.queue import DEFAULT, Update
from tertulia.sim.telegram.refusals import flood, refused

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PORTS = (80, 88, 443, 8443)
LONGEST_SECRET = 256
LONGEST_DELAY = 60.0
TIMEOUT = 30.0
_NOT_BY_ANSWER = ("get", "setwebhook", "deletewebhook", "close", "logout")


class Webhook(Struct, kw_only=True):
    """Where a bot gets its updates."""

    url: str
    secret: str
    max_connections: int
    error_date: int = 0
    error: str = ""


class Webhooks:
    """The webhooks of all bots. *run* makes the call that a bot's answer asks for."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        news: Callable[[], asyncio.Event],
        run: Callable[[BotAccount, str, Arguments], Awaitable[object]],
        retry: float,
    ) -> None:
        self._clock = clock
        self._news = news
        self._run = run
        self._retry = retry
        self._hooks: dict[int, Webhook] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._set_at: dict[int, float] = {}

    def is_active(self, bot: BotAccount) -> bool:
        return bot.id in self._hooks

    def set(self, bot: BotAccount, arguments: Arguments, allow: Callable[[Arguments], None]) -> str:
        """Answer `setWebhook`; return the description."""
        url = arguments.text("url")
        if not url:
            return self.delete(bot, arguments)
        hook = Webhook(
            url=url,
            secret=arguments.text("secret_token"),
            max_connections=arguments.integer("max_connections", 40, 1, 100),
        )
        self._pace(bot)
        old = self._hooks.get(bot.id)
        is_same = old is not None and (old.url, old.secret, old.max_connections) == (
            hook.url,
            hook.secret,
            hook.max_connections,
        )
        if is_same and not arguments.flag("drop_pending_updates"):
            allow(arguments)
            return "Webhook is already set"
        if arguments.flag("drop_pending_updates"):
            bot.updates.clear()
        _check(hook)
        allow(arguments)
        self._stop(bot)
        self._hooks[bot.id] = hook
        self._tasks[bot.id] = asyncio.create_task(self._deliver(bot, hook))
        return "Webhook was set"

    def delete(self, bot: BotAccount, arguments: Arguments) -> str:
        """Answer `deleteWebhook`; return the description."""
        if arguments.flag("drop_pending_updates"):
            bot.updates.clear()
        if not self.is_active(bot):
            return "Webhook is already deleted"
        self._stop(bot)
        return "Webhook was deleted"

    def info(self, bot: BotAccount) -> Wire:
        """Answer `getWebhookInfo`."""
        hook = self._hooks.get(bot.id)
        shown: Wire = {"url": hook.url if hook else "", "has_custom_certificate": False}
        shown["pending_update_count"] = bot.updates.pending()
        if hook is not None:
            if hook.error:
                shown |= {"last_error_date": hook.error_date, "last_error_message": hook.error}
            shown["max_connections"] = hook.max_connections
        if bot.updates.allowed != DEFAULT:
            shown["allowed_updates"] = sorted(bot.updates.allowed)
        return shown

    async def close(self) -> None:
        """Stop all deliveries."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _pace(self, bot: BotAccount) -> None:
        now = max(self._clock(), asyncio.get_running_loop().time())
        if now < self._set_at.get(bot.id, float("-inf")) + 1:
            raise flood(1)
        self._set_at[bot.id] = now

    def _stop(self, bot: BotAccount) -> None:
        self._hooks.pop(bot.id, None)
        task = self._tasks.pop(bot.id, None)
        if task is not None:
            task.cancel()

    async def _deliver(self, bot: BotAccount, hook: Webhook) -> None:
        """Post the updates in order; one that is not taken is posted again, later each time."""
        delay = self._retry
        async with httpx2.AsyncClient(timeout=TIMEOUT) as client:
            while True:
                waiting = bot.updates.take(0, 1)
                if not waiting:
                    await self._news().wait()
                    continue
                wait = await self._post(client, bot, hook, waiting[0])
                if wait is None:
                    bot.updates.confirm(waiting[0])
                    delay = self._retry
                    continue
                await asyncio.sleep(wait or delay)
                delay = min(LONGEST_DELAY, 2 * delay)

    async def _post(self, client: httpx2.AsyncClient, bot: BotAccount, hook: Webhook, update: Update) -> float | None:
        """Post an update; return None if it was taken, else the seconds to wait that the bot named, or 0."""
        headers = {"content-type": "application/json"}
        if hook.secret:
            headers["x-telegram-bot-api-secret-token"] = hook.secret
        try:
            response = await client.post(hook.url, content=update.body, headers=headers)
        except httpx2.HTTPError as error:
            self._failed(hook, str(error) or type(error).__name__)
            return 0.0
        if response.status_code // 100 != 2:
            self._failed(hook, f"Wrong response from the webhook: {response.status_code} {response.reason_phrase}")
            after = response.headers.get("retry-after", "")
            return float(after) if after.isdigit() else 0.0
        await self._answered(bot, response.content)
        return None

    async def _answered(self, bot: BotAccount, body: bytes) -> None:
        """Make the call that an answer asks for; what it is answered is lost, as with Telegram."""
        try:
            given = orjson.loads(body)
        except orjson.JSONDecodeError:
            return
        name = given.pop("method", None) if isinstance(given, dict) else None
        if isinstance(name, str) and not name.lower().startswith(_NOT_BY_ANSWER):
            await self._run(bot, name, Arguments(given))

    def _failed(self, hook: Webhook, why: str) -> None:
        hook.error_date, hook.error = int(self._clock()), why


def _check(hook: Webhook) -> None:
    """Refuse an address or a secret; addresses of this machine need neither TLS nor one of the ports."""
    if len(hook.secret) > LONGEST_SECRET:
        raise refused("secret-long")
    if not re.fullmatch(r"[A-Za-z0-9_-]*", hook.secret):
        raise refused("secret-letters")
    try:
        split = urlsplit(hook.url if "://" in hook.url else f"https://{hook.url}")
        port = split.port
    except ValueError:
        raise refused("webhook-url") from None
    if not split.hostname:
        raise refused("webhook-url")
    if split.hostname in LOOPBACK:
        return
    if split.scheme != "https":
        raise refused("webhook-https")
    if (port or 443) not in PORTS:
        raise refused("webhook-port")
    raise refused("webhook-host")
