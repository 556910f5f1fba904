"""TelegramSim: a Bot API server over real HTTP, and people who write to its bots."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Literal, Self

import orjson
from msgspec import Struct
from starlette.requests import Request as StarletteRequest
from starlette.types import Receive, Scope, Send

from palaver.sim.errors import Wire
from palaver.sim.server import Clock, HttpResponse, Served, whole_response
from palaver.sim.telegram.accounts import BotAccount
from palaver.sim.telegram.arguments import Arguments, read_arguments
from palaver.sim.telegram.chats import SimChat
from palaver.sim.telegram.faults import Fault, FaultQueue
from palaver.sim.telegram.methods import METHODS
from palaver.sim.telegram.people import SimBot, SimUser
from palaver.sim.telegram.polling import Poller
from palaver.sim.telegram.refusals import Refused, refused
from palaver.sim.telegram.sending import Action, Activity, Draft
from palaver.sim.telegram.world import World

TOKEN = "7000000000:SIMULATED-bot-of-palaver"  # noqa: S105 (a token of the simulator alone)
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


class TelegramSim:
    """`async with TelegramSim() as sim:` serves a Bot API at `sim.url` until the block ends.

    `sim.token` is the token of its first bot, `sim.bot`. Time stands still unless *clock* runs (`clock=time.time`);
    `sim.clock.advance(seconds)` lets it pass. People are made with `sim.user`, chats with `sim.private` and
    `sim.group`; what bots did is in `sim.chat(id).messages`, `sim.drafts`, `sim.actions` and `sim.calls`.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        name: str = "Palaver",
        username: str = "palaver_bot",
        privacy: bool = False,
        clock: Callable[[], float] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        tell: Callable[[Call], None] | None = None,
    ) -> None:
        self.clock = clock if isinstance(clock, Clock) else Clock(clock)
        self.calls: list[Call] = []
        self.world = World(self.clock, self._changed)
        self._activity = Activity()
        self._faults = FaultQueue()
        self._pollers: dict[int, Poller] = {}
        self._served = Served(self._serve, host=host, port=port)
        self._tell = tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._stopping = asyncio.Event()
        self.bot = SimBot(self.world, self.world.add_bot(name, username=username, token=token, privacy=privacy))

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._served.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await self._served.__aexit__()
        self._loop = None

    @property
    def url(self) -> str:
        """The base URL to give to clients: they add `/bot<token>/<method>`."""
        return self._served.url

    @property
    def token(self) -> str:
        """The token of the first bot."""
        return self.bot.token

    @property
    def actions(self) -> list[Action]:
        """Every `sendChatAction`, in order."""
        return self._activity.actions

    @property
    def drafts(self) -> list[Draft]:
        """Every `sendMessageDraft`, in order."""
        return self._activity.drafts

    def user(
        self, name: str, *, language_code: str | None = "en", username: str | None = None, last_name: str | None = None
    ) -> SimUser:
        """Return a new person."""
        account = self.world.add_person(name, language_code=language_code, username=username, last_name=last_name)
        return SimUser(self.world, account, self._activity)

    def add_bot(self, name: str, *, username: str, privacy: bool = False) -> SimBot:
        """Return another bot with a token and updates of its own; it can also write as people do."""
        return SimBot(self.world, self.world.add_bot(name, username=username, privacy=privacy))

    def private(self, user: SimUser, bot: SimBot | None = None) -> SimChat:
        """Return the private chat of a person with a bot, the first one by default; the person has pressed Start."""
        return SimChat(self.world, self.world.private(user.account, (bot or self.bot).bot_account))

    def group(
        self,
        title: str,
        members: Iterable[SimUser] = (),
        *,
        forum: bool = False,
        supergroup: bool = False,
        username: str | None = None,
    ) -> SimChat:
        """Return a group of these people and the first bot; the first person is the owner."""
        ids = [member.id for member in members]
        kind: Literal["group", "supergroup"] = "supergroup" if forum or supergroup or username else "group"
        accounts = [*ids, self.bot.id] if self.bot.id not in ids else ids
        return SimChat(self.world, self.world.add_group(title, accounts, kind=kind, is_forum=forum, username=username))

    def channel(self, title: str, owner: SimUser, *, username: str | None = None) -> SimChat:
        """Return a channel of *owner* with the first bot as its administrator."""
        chat = self.world.add_group(title, [owner.id], kind="channel", username=username)
        chat.members[self.bot.id] = "administrator"
        return SimChat(self.world, chat)

    def chat(self, number: int, bot: SimBot | None = None) -> SimChat:
        """Return a chat by its id; that of a person means the private chat with *bot*."""
        found = self.world.chat_of((bot or self.bot).bot_account, number)
        if found is None:
            raise KeyError(number)
        return SimChat(self.world, found)

    def inject(self, update: Wire, bot: SimBot | None = None) -> int:
        """Give a bot an update as it stands, whatever kinds it asked for; return its id."""
        kind = next((name for name in update if name != "update_id"), "")
        given = {name: value for name, value in update.items() if name != "update_id"}
        return (bot or self.bot).bot_account.updates.add_raw(kind, given)

    def fail(self, what: str | int, times: int = 1, *, method: str | None = None, retry_after: int = 1) -> None:
        """Let the next *times* calls of *method* fail; without one, those that post or change messages.

        *what* is `busy` (429), `refused` (400), `request lost` (the connection ends, nothing is posted), `receipt lost`
        (it is posted and the connection ends), or a status: 400, 401, 403, 404, 409, 429, 500, 502, 503, 504.
        """
        self._faults.add(what, times=times, method=method, retry_after=retry_after)

    def disconnect(self) -> None:
        """End every connection."""
        self._served.disconnect()

    def deliver_again(self, bot: SimBot | None = None) -> None:
        """Let a bot get all its updates again, as if it had confirmed none."""
        (bot or self.bot).bot_account.updates.restore()

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until *ready* is true; it is asked whenever a call is answered and an update comes."""
        while not ready():
            await self._news.wait()

    def stop(self) -> None:
        """End `forever`."""
        self._served.stop()

    async def forever(self) -> None:
        """Serve until the server is stopped."""
        await self._served.forever()

    def _changed(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._notify)

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = StarletteRequest(scope, receive)
        body = await request.body()
        path = request.url.path
        if path.startswith("/file/bot"):
            await self._file(path).send(send, {})
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
        self._notify()
        try:
            response = await self._answer(bot, name.lower(), arguments, receive)
        except Refused as error:
            call.description, call.rule = error.description, error.rule
            response = _error(error)
        call.status = response.status if response is not None else 0
        self._notify()
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
        bot = self.world.bots.get(token)
        if bot is None:
            raise refused("token")
        if bot.is_logged_out:
            raise refused("logged-out")
        return bot, name

    async def _answer(self, bot: BotAccount, name: str, arguments: Arguments, receive: Receive) -> HttpResponse | None:
        fault = self._faults.take(name)
        if fault is not None and fault.what == "request lost":
            return None
        if fault is not None and fault.what != "receipt lost":
            raise fault.refusal()
        if name == "getupdates":
            response = await self._get_updates(bot, arguments, receive)
        elif (method := METHODS.get(name)) is not None:
            response = _result(orjson.dumps(method(self.world, self._activity, bot, arguments)))
        else:
            raise refused("method")
        return None if fault is not None else response

    async def _get_updates(self, bot: BotAccount, arguments: Arguments, receive: Receive) -> HttpResponse | None:
        poller = self._pollers.setdefault(bot.id, Poller(bot, self.clock))
        gone = asyncio.ensure_future(self._left(receive))
        try:
            updates = await poller.get(arguments, lambda: self._news, gone)
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

    def _file(self, path: str) -> HttpResponse:
        token, _, rest = path.removeprefix("/file/bot").partition("/")
        file = self.world.files.at(rest) if token in self.world.bots else None
        if file is None:
            return _error(refused("not-found" if token in self.world.bots else "token"))
        return whole_response(file.data, headers={"content-type": "application/octet-stream"})


def _result(body: bytes) -> HttpResponse:
    return whole_response(b'{"ok":true,"result":' + body + b"}", headers=_JSON)


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


__all__ = ["TOKEN", "Call", "Fault", "TelegramSim"]
