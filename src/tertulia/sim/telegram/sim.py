"""TelegramSim: a Bot API server over real HTTP, and people who write to its bots."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Literal, Self

from starlette.types import Receive, Scope, Send

from tertulia.sim.errors import Wire
from tertulia.sim.server import Clock, Served
from tertulia.sim.telegram.api import BotApi, Call
from tertulia.sim.telegram.chats import SimChat
from tertulia.sim.telegram.control import Control
from tertulia.sim.telegram.flood import FloodControl
from tertulia.sim.telegram.people import SimBot, SimUser
from tertulia.sim.telegram.sending import Action, Activity, Draft
from tertulia.sim.telegram.world import World

TOKEN = "7000000000:SIMULATED-bot-of-tertulia"  # noqa: S105 (a token of the simulator alone)


class TelegramSim:
    """`async with TelegramSim() as sim:` serves a Bot API at `sim.url` until the block ends.

    `sim.token` is the token of its first bot, `sim.bot`. Time stands still unless *clock* runs (`clock=time.time`);
    `sim.clock.advance(seconds)` lets it pass. People are made with `sim.user`, chats with `sim.private` and
    `sim.group`. What bots did is in `sim.chat(id).messages`, `sim.drafts`, `sim.actions` and `sim.calls`. With *flood*
    a bot gets a 429 above Telegram's published limits. An update that a webhook does not take is posted again after
    *webhook_retry* seconds, then later each time.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        name: str = "Tertulia",
        username: str = "tertulia_bot",
        privacy: bool = False,
        clock: Callable[[], float] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        flood: bool = False,
        webhook_retry: float = 1.0,
        tell: Callable[[Call], None] | None = None,
    ) -> None:
        self.clock = clock if isinstance(clock, Clock) else Clock(clock)
        self.world = World(self.clock, self._changed, FloodControl(self.clock) if flood else None)
        self._activity = Activity()
        self._api = BotApi(self.world, self._activity, webhook_retry=webhook_retry, tell=tell)
        self._control = Control(self)
        self._served = Served(self._serve, host=host, port=port)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.bot = SimBot(self.world, self.world.add_bot(name, username=username, token=token, privacy=privacy))

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._served.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._api.close()
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
    def calls(self) -> list[Call]:
        """Every call of a bot, in order, with how it was answered."""
        return self._api.calls

    @property
    def actions(self) -> list[Action]:
        """Every `sendChatAction`, in order."""
        return self._activity.actions

    @property
    def drafts(self) -> list[Draft]:
        """Every `sendMessageDraft`, in order."""
        return self._activity.drafts

    @property
    def answers(self) -> dict[str, str]:
        """What bots answered to buttons, by the id of the query."""
        return self._activity.answers

    def user(
        self, name: str, *, language_code: str | None = "en", username: str | None = None, last_name: str | None = None
    ) -> SimUser:
        """Return a new person."""
        account = self.world.add_person(name, language_code=language_code, username=username, last_name=last_name)
        return SimUser(self.world, account, self._activity)

    def add_bot(self, name: str, *, username: str, token: str | None = None, privacy: bool = False) -> SimBot:
        """Return another bot with a token and updates of its own; it can also write as people do."""
        return SimBot(self.world, self.world.add_bot(name, username=username, token=token, privacy=privacy))

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

    def fail(
        self,
        what: str | int,
        times: int = 1,
        *,
        method: str | None = None,
        retry_after: int = 1,
        description: str = "",
    ) -> None:
        """Let the next *times* calls of *method* fail; without one, those that post or change messages.

        *what* is `busy` (429), `refused` (400), `request lost` (the connection ends, nothing is posted), `receipt lost`
        (it is posted and the connection ends), or a status: 400, 401, 403, 404, 409, 429, 500, 502, 503, 504, with a
        *description* of your own. With `method="download"` it is a download of a file that fails; it may also be
        `broken` (half of it comes) or it `hangs`.
        """
        self._api.faults.add(what, times=times, method=method, retry_after=retry_after, description=description)

    def disconnect(self) -> None:
        """End every connection."""
        self._served.disconnect()

    def deliver_again(self, bot: SimBot | None = None) -> None:
        """Let a bot get its updates again, as if it had confirmed none of the last ten thousand."""
        (bot or self.bot).bot_account.updates.restore()

    async def until(self, ready: Callable[[], bool], *, timeout: float = 60) -> None:
        """Wait until *ready* is true; it is asked whenever a call comes or is answered, and an update comes.

        Raises `TimeoutError` with the last calls if that takes more than *timeout* seconds.
        """
        here = self._loop is None or self._loop is asyncio.get_running_loop()
        try:
            await asyncio.wait_for(self._api.until(ready) if here else self._until_in_thread(ready), timeout)
        except TimeoutError:
            last = ", ".join(f"{call.method} {call.status}" for call in self.calls[-5:]) or "none"
            raise TimeoutError(f"not within {timeout:g} seconds; the last calls were: {last}") from None

    async def _until_in_thread(self, ready: Callable[[], bool]) -> None:
        """Wait for what is served by the loop of another thread."""
        if self._loop is not None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._api.until(ready), self._loop))

    def stop(self) -> None:
        """End `forever`."""
        self._served.stop()

    async def forever(self) -> None:
        """Serve until the server is stopped."""
        await self._served.forever()

    def _changed(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._api.notify)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        serve = self._control.serve if scope["path"].startswith("/control/") else self._api.serve
        await serve(scope, receive, send)
