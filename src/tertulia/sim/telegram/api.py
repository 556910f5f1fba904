"""The Bot API over HTTP: tokens, methods, polling, webhooks, files and injected faults."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import orjson
from msgspec import Struct
from starlette.requests import Request as StarletteRequest
from starlette.types import Receive, Scope, Send

from tertulia.sim.errors import Wire
from tertulia.sim.server import HttpResponse, whole_response
from tertulia.sim.telegram.accounts import BotAccount
from tertulia.sim.telegram.arguments import Arguments, read_arguments
from tertulia.sim.telegram.faults import DOWNLOAD, FaultQueue
from tertulia.sim.telegram.methods import METHODS
from tertulia.sim.telegram.polling import Poller
from tertulia.sim.telegram.refusals import Refused, refused
from tertulia.sim.telegram.sending import Activity
from tertulia.sim.telegram.webhooks import Webhooks
from tertulia.sim.telegram.world import World

LONGEST_TOKEN = 80
_JSON = {"content-type": "application/json"}


class Call(Struct, kw_only=True):
    """A call that a bot made: how it was answered, 0 while it waits or if the connection was dropped."""

    bot: int
    method: str  # as the bot wrote it
    params: Wire
    files: tuple[str, ...] = ()
    status: int = 0
    description: str = ""
    rule: str = ""  # the rule that refused it


class BotApi:
    """Serves the bots of a world; *tell* is called with every call that was answered."""

    def __init__(
        self, world: World, activity: Activity, *, webhook_retry: float, tell: Callable[[Call], None] | None
    ) -> None:
        self.calls: list[Call] = []
        self.faults = FaultQueue()
        self._world = world
        self._activity = activity
        self._tell = tell
        self._pollers: dict[int, Poller] = {}
        self._webhooks = Webhooks(clock=world.clock, news=lambda: self._news, run=self._run, retry=webhook_retry)
        self._news = asyncio.Event()
        self._stopping = asyncio.Event()

    async def close(self) -> None:
        """End the polls and deliveries under way."""
        self._stopping.set()
        await self._webhooks.close()

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until *ready* is true; it is asked whenever a call comes or is answered, and an update comes."""
        while not ready():
            await self._news.wait()

    def notify(self) -> None:
        """Wake all who wait for news."""
        self._news.set()
        self._news = asyncio.Event()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = StarletteRequest(scope, receive)
        body = await request.body()
        path = request.url.path
        if path.startswith("/file/bot"):
            found = await self._file(path)
            await (_drop(send) if found is None else found.send(send, {}))
            return
        response = await self._api(path, request, body, receive)
        if response is None:
            await _drop(send)
        else:
            await response.send(send, {})

    async def _api(self, path: str, request: StarletteRequest, body: bytes, receive: Receive) -> HttpResponse | None:
        """Return the answer to a call; None if the connection shall end without one."""
        try:
            bot, name = self._authorised(path)
            arguments = read_arguments(request.url.query, request.headers.get("content-type", ""), body)
        except Refused as error:
            return _error(error)
        call = Call(bot=bot.id, method=name, params=arguments.given, files=tuple(sorted(arguments.uploads)))
        self.calls.append(call)
        self.notify()
        try:
            response = await self._answer(bot, name.lower(), arguments, receive)
        except Refused as error:
            call.description, call.rule = error.description, error.rule
            response = _error(error)
        call.status = response.status if response is not None else 0
        self.notify()
        if self._tell is not None:
            self._tell(call)
        return response

    def _authorised(self, path: str) -> tuple[BotAccount, str]:
        token, slash, name = path.removeprefix("/bot").partition("/")
        if not path.startswith("/bot") or not slash:
            raise refused("not-found")
        if not token or token.startswith("0") or len(token) > LONGEST_TOKEN or ":" not in token:
            raise refused("token-form")
        if not token.partition(":")[0].isdigit():
            raise refused("token-range")
        bot = self._world.bots.get(token)
        if bot is None:
            raise refused("token")
        if bot.is_logged_out:
            raise refused("logged-out")
        return bot, name

    async def _answer(self, bot: BotAccount, name: str, arguments: Arguments, receive: Receive) -> HttpResponse | None:
        fault = self.faults.take(name)
        if fault is not None and fault.what == "request lost":
            return None
        if fault is not None and fault.what != "receipt lost":
            raise fault.refusal()
        response = await self._respond(bot, name, arguments, receive)
        return None if fault is not None else response

    async def _respond(self, bot: BotAccount, name: str, arguments: Arguments, receive: Receive) -> HttpResponse | None:
        match name:
            case "getupdates":
                return await self._get_updates(bot, arguments, receive)
            case "setwebhook":
                poller = self._poller(bot)
                description = self._webhooks.set(bot, arguments, poller.allow)
                if self._webhooks.is_active(bot):
                    poller.end("poll-by-webhook")
                return _result(b"true", description)
            case "deletewebhook":
                return _result(b"true", self._webhooks.delete(bot, arguments))
            case "getwebhookinfo":
                return _result(orjson.dumps(self._webhooks.info(bot)))
            case "close":
                return _result(b"true")
            case "logout":
                bot.is_logged_out = True
                bot.updates.clear()
                return _result(b"true")
        method = METHODS.get(name)
        if method is None:
            raise refused("method")
        return _result(orjson.dumps(method(self._world, self._activity, bot, arguments)))

    async def _run(self, bot: BotAccount, name: str, arguments: Arguments) -> None:
        """Make a call that a bot asked for in its answer to an update."""
        call = Call(bot=bot.id, method=name, params=arguments.given)
        self.calls.append(call)
        method = METHODS.get(name.lower())
        try:
            if method is None:
                raise refused("method")
            method(self._world, self._activity, bot, arguments)
            call.status = 200
        except Refused as error:
            call.status, call.description, call.rule = error.code, error.description, error.rule
        self.notify()

    def _poller(self, bot: BotAccount) -> Poller:
        return self._pollers.setdefault(bot.id, Poller(bot, self._world.clock))

    async def _get_updates(self, bot: BotAccount, arguments: Arguments, receive: Receive) -> HttpResponse | None:
        if self._webhooks.is_active(bot):
            raise refused("webhook-active")
        gone = asyncio.ensure_future(self._left(receive))
        try:
            updates = await self._poller(bot).get(arguments, lambda: self._news, gone)
        finally:
            gone.cancel()
        return None if updates is None else _result(b"[" + b",".join(update.body for update in updates) + b"]")

    async def _left(self, receive: Receive) -> None:
        """Wait until the client left or the simulator stops."""
        ends = [asyncio.ensure_future(receive()), asyncio.ensure_future(self._stopping.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def _file(self, path: str) -> HttpResponse | None:
        """Return the answer to a download; None if the connection shall end without one."""
        token, _, rest = path.removeprefix("/file/bot").partition("/")
        file = self._world.files.at(rest) if token in self._world.bots else None
        if file is None:
            return _error(refused("not-found" if token in self._world.bots else "token"))
        call = Call(bot=self._world.bots[token].id, method=DOWNLOAD, params={"file_path": rest})
        self.calls.append(call)
        self.notify()
        fault = self.faults.take(DOWNLOAD)
        if fault is not None and fault.what == "hangs":
            await self._stopping.wait()
        if fault is not None and fault.what in ("hangs", "request lost", "receipt lost"):
            return None
        is_broken = fault is not None and fault.what == "broken"
        headers = {"content-type": "application/octet-stream"}
        response = whole_response(file.data, headers=headers, cut=is_broken)
        if fault is not None and not is_broken:
            response = _error(fault.refusal())
        call.status = response.status
        self.notify()
        return response


def _result(body: bytes, description: str = "") -> HttpResponse:
    words = b',"description":' + orjson.dumps(description) if description else b""
    return whole_response(b'{"ok":true,"result":' + body + words + b"}", headers=_JSON)


def _error(error: Refused) -> HttpResponse:
    body: dict[str, Any] = {"ok": False, "error_code": error.code, "description": error.description}
    headers = dict(_JSON)
    if error.parameters:
        body["parameters"] = error.parameters
        if "retry_after" in error.parameters:
            headers["retry-after"] = str(error.parameters["retry_after"])
    return whole_response(orjson.dumps(body), status=error.code, headers=headers)


async def _drop(send: Send) -> None:
    """End the connection without an answer."""
    with contextlib.suppress(AttributeError):
        send.__self__.transport.abort()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
