"""Client of the Bot API: one method a call, paced per chat and overall, failures as errors that say what follows."""

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import msgspec
from msgspec import Struct

from tertulia.engine.background import Sleep
from tertulia.errors import (
    ConnectionLost,
    KeyRefused,
    MediaUnavailable,
    NotSent,
    ResponseUnreadable,
    TertuliaError,
    TimedOut,
    seconds_to_wait,
)
from tertulia.models.http import public_url
from tertulia.platforms.telegram import batches, types
from tertulia.redaction import redact_keys

T = TypeVar("T")

DEFAULT_BASE_URL = "https://api.telegram.org"
CALL_TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
DOWNLOAD_TIMEOUT = httpx2.Timeout(20.0, connect=10.0)
POLL_TIMEOUT = 50  # seconds that a request for updates waits for the first one; the service allows no more
CALL_DEADLINE, POLL_DEADLINE = 120.0, POLL_TIMEOUT + 30.0  # seconds of a call in all, however slowly its answer comes
LONGEST_HOLD = 5.0  # seconds that all chats wait because the service asked for some
LONGEST_WAIT = 20.0  # seconds that a call waits for its turn; beyond that it is not sent yet


class ApiError(TertuliaError):
    """The service refused a call; `description` is its text."""

    def __init__(self, code: int, description: str, *, retry_after: float | None = None, migrate_to: int = 0) -> None:
        super().__init__(f"{code}: {description}")
        self.code = code
        self.description = description
        self.retry_after = seconds_to_wait(retry_after)  # as the service asked; None if it did not
        self.migrate_to = migrate_to  # the new id of a group

    @property
    def is_bad_request(self) -> bool:
        """Whether the service itself says that what we sent is wrong, so that the same call is refused again."""
        return self.code == 400 and not isinstance(self, GatewayError)

    def tells(self, *texts: str) -> bool:
        return any(text.casefold() in self.description.casefold() for text in texts)


class GatewayError(ApiError):
    """Something between us and the service refused a call: a proxy, or a gateway."""


class Pace(Struct, frozen=True, kw_only=True):
    """How much is sent: messages a second to one direct chat, to one group, and overall."""

    direct: float = 1.0
    group: float = 20 / 60
    overall: float = 30.0
    burst: float = 4.0  # messages that may follow each other at once


class _Parameters(Struct, frozen=True):
    retry_after: float | None = None
    migrate_to_chat_id: int = 0


class _Answer(Struct, frozen=True):
    ok: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: _Parameters = _Parameters()


class _Posted(Struct, frozen=True):
    """A message that we sent; the rest of it, as the message that it replies to, may have any form."""

    message_id: int


_ANSWER = msgspec.json.Decoder(_Answer)
_USER = msgspec.json.Decoder(types.User)
_STICKERS = msgspec.json.Decoder(types.StickerSet)
_WEBHOOK = msgspec.json.Decoder(types.WebhookInfo)
_MEMBER = msgspec.json.Decoder(types.ChatMember)
_POSTED = msgspec.json.Decoder(_Posted)
_FILE = msgspec.json.Decoder(types.FilePath)
_RELATIVE_PATH = re.compile(r"\w[^\\:]*")  # of a server that gives files by HTTP


class BotClient:
    """Calls the methods of the Bot API for one bot. The token is in no error and in no log."""

    def __init__(
        self,
        token: str,
        *,
        base_url: str = DEFAULT_BASE_URL,
        pace: Pace = Pace(),  # noqa: B008 (frozen)
        sleep: Sleep = asyncio.sleep,
        deadline: float = CALL_DEADLINE,
    ) -> None:
        self._deadline = deadline  # seconds of a call in all
        self._token = token
        self._base_url = base_url.rstrip("/")
        self._pacer = Pacer(pace, sleep=sleep)
        self._http: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._shown_url = public_url(self._base_url)  # for errors
        self._filter = _TokenFilter(self._hide)

    async def aclose(self) -> None:
        logging.getLogger("httpx2").removeFilter(self._filter)
        http, self._http = self._http, None
        if http is not None and self._loop is asyncio.get_running_loop():
            await http.aclose()

    async def me(self) -> types.User:
        return _decoded(_USER, "getMe", await self.call("getMe"))

    async def updates(self, offset: int, allowed: Sequence[str]) -> list[tuple[int, bytes]]:
        """Wait for updates from *offset* on; that confirms those before it. Return their numbers and raw forms."""
        params = {"offset": offset, "timeout": POLL_TIMEOUT, "allowed_updates": list(allowed)}
        timeout = httpx2.Timeout(POLL_TIMEOUT + 20.0, connect=10.0)
        response = await self._request(
            "getUpdates", params, timeout=timeout, deadline=min(self._deadline, POLL_DEADLINE)
        )
        if (found := batches.updates_in(response.content)) is None:
            self._result("getUpdates", response)
            raise ResponseUnreadable("the answer to getUpdates has no updates with numbers")
        return found

    async def webhook(self) -> types.WebhookInfo:
        return _decoded(_WEBHOOK, "getWebhookInfo", await self.call("getWebhookInfo"))

    async def member(self, chat_id: str, user_id: str) -> types.ChatMember:
        params = {"chat_id": chat_id, "user_id": user_id}
        return _decoded(_MEMBER, "getChatMember", await self.call("getChatMember", params))

    async def stickers(self, set_name: str) -> list[types.File]:
        """Return the stickers of a set."""
        return _decoded(_STICKERS, "getStickerSet", await self.call("getStickerSet", {"name": set_name})).stickers

    async def file(self, file_id: str, *, limit: int) -> bytes:
        """Return the bytes of a file, at most *limit*. Raise `MediaUnavailable` if they cannot be had."""
        try:
            found = _decoded(_FILE, "getFile", await self.call("getFile", {"file_id": file_id}))
            if found.file_size > limit:
                raise MediaUnavailable(f"the file has {found.file_size:,} bytes, more than {limit:,}")
            if not _RELATIVE_PATH.fullmatch(found.file_path) or ".." in found.file_path:
                raise MediaUnavailable("the Bot API server gives paths on its own disk (--local), which are not read")
            return await self._download(found.file_path, limit)
        except ApiError as error:
            is_final = error.is_bad_request and not error.tells("temporarily unavailable")
            raise MediaUnavailable(f"Telegram does not give the file: {error}", for_now=not is_final) from error
        except (KeyRefused, NotSent, TimedOut, ConnectionLost, ResponseUnreadable) as error:
            raise MediaUnavailable(str(error), for_now=True) from error

    async def post(
        self, method: str, params: Mapping[str, Any], *, files: Mapping[str, tuple[str, bytes]] | None = None
    ) -> int | None:
        """Send or edit a message of a chat, in its turn; return its id, where the service gives one."""
        chat = str(params["chat_id"])
        await self._pacer.turn(chat)
        try:
            result = await self.call(method, params, files=files)
        except ApiError as error:
            if error.code == 429:
                self._pacer.hold(chat, error.retry_after or 1.0)
            raise
        return _decoded(_POSTED, method, result).message_id if result.lstrip().startswith(b"{") else None

    async def show(self, method: str, params: Mapping[str, Any]) -> None:
        """Show something that may be missed, unless the service asks us to wait."""
        chat = str(params["chat_id"])
        if self._pacer.wait(chat) > 0:
            return
        try:
            await self.call(method, params)
        except ApiError as error:
            if error.code != 429:
                raise
            self._pacer.hold(chat, error.retry_after or 1.0)

    def is_free(self, chat_id: str) -> bool:
        """Return whether an edit of a draft may be sent now: more than one message has its turn at once."""
        return self._pacer.is_free(chat_id)

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, tuple[str, bytes]] | None = None,
    ) -> bytes:
        """Call a method; return its result as JSON."""
        response = await self._request(method, params, files=files, timeout=CALL_TIMEOUT, deadline=self._deadline)
        return self._result(method, response)

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        timeout: httpx2.Timeout,
        deadline: float,
    ) -> httpx2.Response:
        url = f"{self._base_url}/bot{self._token}/{method}"
        async with self._failures(method, deadline):
            if files:
                fields = {name: _form_value(value) for name, value in (params or {}).items()}
                return await self._client().post(url, data=fields, files=files, timeout=timeout)
            headers = {"content-type": "application/json"}
            content = msgspec.json.encode(params or {})
            return await self._client().post(url, content=content, headers=headers, timeout=timeout)

    async def _download(self, path: str, limit: int) -> bytes:
        url = f"{self._base_url}/file/bot{self._token}/{quote(path)}"
        headers = {"accept-encoding": "identity"}
        data = bytearray()
        async with (
            self._failures("a download", self._deadline),
            self._client().stream("GET", url, headers=headers, timeout=DOWNLOAD_TIMEOUT) as response,
        ):
            if response.status_code != 200:  # the path is valid for an hour
                raise MediaUnavailable(f"Telegram answers {response.status_code} to a download", for_now=True)
            async for piece in response.aiter_raw():
                data += piece
                if len(data) > limit:
                    raise MediaUnavailable(f"the file has more than {limit:,} bytes")
        return bytes(data)

    @asynccontextmanager
    async def _failures(self, what: str, deadline: float) -> AsyncIterator[None]:
        """End a call at its deadline; raise our errors for those of the HTTP client. None of them holds the token."""
        try:
            async with asyncio.timeout(deadline):
                yield
        except TimeoutError:
            raise TimedOut(f"{self._shown_url} did not answer {what} within {deadline:g} seconds") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise NotSent(
                f"no connection to {self._shown_url}: {self._hide(str(error)) or type(error).__name__}"
            ) from None
        except httpx2.TimeoutException:
            raise TimedOut(f"{self._shown_url} did not answer {what} in time") from None
        except httpx2.InvalidURL as error:
            raise KeyRefused(f"this is no token of a Telegram bot: {self._hide(str(error))}") from None
        except httpx2.RequestError as error:
            raise ConnectionLost(f"the connection to {self._shown_url} broke off: {self._hide(str(error))}") from None

    def _result(self, method: str, response: httpx2.Response) -> bytes:
        try:
            answer = _ANSWER.decode(response.content)
        except (msgspec.MsgspecError, RecursionError):
            answer = _Answer()
        if answer.ok:
            return bytes(answer.result)
        code, given = answer.error_code, answer.parameters
        if not code and response.status_code >= 400:
            reason = response.reason_phrase or "no reason given"
            raise GatewayError(response.status_code, f"{reason} (of a gateway or proxy, not of the Bot API)")
        if not code:
            raise ResponseUnreadable(f"the answer to {method} is no answer of the Bot API")
        if code == 401 or (code == 404 and answer.description == "Not Found"):
            raise KeyRefused(
                "Telegram does not know this token; BotFather shows the right one: "
                "set TERTULIA_TELEGRAM_TOKEN, or token in [telegram]"
            )
        raise ApiError(
            code, self._hide(answer.description), retry_after=given.retry_after, migrate_to=given.migrate_to_chat_id
        )

    def _hide(self, text: str) -> str:
        """Return *text* without the token, and without user and password of an address."""
        return redact_keys(text.replace(self._token, "***"))

    def _client(self) -> httpx2.AsyncClient:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._http is None or self._loop is not loop:
            logging.getLogger("httpx2").addFilter(self._filter)
            limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20)
            self._http, self._loop = httpx2.AsyncClient(timeout=CALL_TIMEOUT, limits=limits), loop
        return self._http


class Pacer:
    """Gives each message its turn: so many a second to a chat and overall, and none while the service says to wait."""

    def __init__(self, pace: Pace, *, sleep: Sleep, clock: Callable[[], float] | None = None) -> None:
        self._pace = pace
        self._sleep = sleep
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._chats: dict[str, float] = {}  # when the debt of a chat will be paid
        self._overall = 0.0
        self._last_held = "", -math.inf  # the chat that the service asked for last to wait, and when

    async def turn(self, chat: str) -> None:
        """Wait for a turn; raise `NotSent` where that would take too long."""
        wait = self.wait(chat)
        if wait > LONGEST_WAIT:
            raise NotSent("the service asks us to wait", retry_after=wait)
        now = self._clock()
        self._forget_paid(now)
        self._chats[chat] = max(self._chats.get(chat, 0.0), now) + 1 / self._rate(chat)
        self._overall = max(self._overall, now) + 1 / self._pace.overall
        if wait > 0:
            await self._sleep(wait)

    def is_free(self, chat: str) -> bool:
        """Return whether this message and one more have their turns at once."""
        return self._wait_of_chat(chat) + 1 / self._rate(chat) <= 0 and self._wait_overall() <= 0

    def hold(self, chat: str, seconds: float) -> None:
        """Let a chat wait, as the service asks. If it asks for two within a second, we are too fast for it overall."""
        now, (last, at) = self._clock(), self._last_held
        until = now + seconds + self._pace.burst / self._rate(chat)
        self._chats[chat] = max(self._chats.get(chat, 0.0), until)
        if last != chat and now - at < 1.0:
            self._overall = max(self._overall, now + min(seconds, LONGEST_HOLD) + 1.0)
        self._last_held = chat, now

    def wait(self, chat: str) -> float:
        """Return the seconds until the next turn; negative where it could have been before."""
        return max(self._wait_of_chat(chat), self._wait_overall())

    def _wait_of_chat(self, chat: str) -> float:
        return self._chats.get(chat, 0.0) - self._clock() - self._pace.burst / self._rate(chat)

    def _wait_overall(self) -> float:
        return self._overall - self._clock() - 1.0

    def _rate(self, chat: str) -> float:
        """Return the messages a second to a chat. The ids of groups and channels are negative."""
        return self._pace.group if chat.startswith("-") else self._pace.direct

    def _forget_paid(self, now: float) -> None:
        if len(self._chats) > 1000:
            self._chats = {chat: paid for chat, paid in self._chats.items() if paid > now}


class _TokenFilter(logging.Filter):
    """Removes the token from the lines that the HTTP client logs: it is a part of each address."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        super().__init__()
        self._hide = hide

    def filter(self, record: logging.LogRecord) -> bool:
        shown = self._hide(text := record.getMessage())
        if shown != text:
            record.msg, record.args = shown, ()
        return True


def _decoded(decoder: msgspec.json.Decoder[T], method: str, result: bytes) -> T:
    try:
        return decoder.decode(result)
    except msgspec.MsgspecError as error:
        raise ResponseUnreadable(f"the answer to {method} is no answer of the Bot API: {error}") from None


def _form_value(value: Any) -> str:
    """Return a value as a field of a form: anything but text as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
