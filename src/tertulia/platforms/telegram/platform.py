"""Telegram: a bot as a platform. It polls for updates, or receives them by a webhook, and sends entities."""

import asyncio
import logging
import os
import re
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar

from msgspec.structs import replace

from tertulia.backoff import backoff
from tertulia.engine.background import Sleep
from tertulia.errors import (
    ConnectionLost,
    InvalidValue,
    KeyMissing,
    KeyRefused,
    NotSent,
    ResponseUnreadable,
    SendRefused,
    TimedOut,
    reason_of,
)
from tertulia.messages import Author, Place, Reply
from tertulia.parts import Media
from tertulia.platform import (
    ALL_MEDIA,
    Capabilities,
    Change,
    CommandInfo,
    Delivery,
    Inbox,
    PlaceMigrated,
    PlaceRole,
    Platform,
    Trouble,
)
from tertulia.platforms.telegram import types
from tertulia.platforms.telegram.client import DEFAULT_BASE_URL, ApiError, BotClient, GatewayError, Pace
from tertulia.platforms.telegram.markdown import render
from tertulia.platforms.telegram.parameters import (
    ATTACHED,
    DOCUMENT,
    UPLOAD_LIMIT,
    command_menus,
    emojis_of,
    files,
    media_as_text,
    method_of,
    plain_text,
    reply_fields,
    sticker_file,
    text_fields,
    thread_field,
)
from tertulia.platforms.telegram.split import split_markdown
from tertulia.platforms.telegram.updates import Account, changes_of, kind_of
from tertulia.platforms.telegram.webhook import WebhookApp, secret_of, serve
from tertulia.platforms.telegram.words import name_of

T = TypeVar("T")

log = logging.getLogger(__name__)

TEXT_LIMIT, CAPTION_LIMIT = 4096, 1024  # code points after the markup is taken out
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0  # seconds until updates are asked for again
WEBHOOK_CHECK = 300.0  # seconds between two looks at the webhook
CONFLICT_PAUSE = 5.0  # seconds to wait while another program gets our updates

_SHARED = re.compile(r"-100\d{10,}")  # the id of a supergroup or a channel
_WITHOUT_CAPTION = ("sticker", "video_note")
_GONE = (  # we can send nothing more to the chat
    "bot was blocked by the user", "user is deactivated", "bot was kicked", "bot is not a member", "chat not found",
    "the group chat was deleted", "bot can't initiate conversation", "can't send messages to the bot",
    "have no write access to the chat", "CHAT_WRITE_FORBIDDEN",
)  # fmt: skip
_WITHOUT = {  # a field that is left out once, if the service refuses it with one of these texts
    "entities": ("can't parse entities", "entity ", "ENTITY_", "ENTITIES_"),
    "caption_entities": ("can't parse entities", "entity ", "ENTITY_", "ENTITIES_"),
    "reply_parameters": ("message to be replied not found", "reply message not found", "REPLY_MESSAGE_ID_INVALID"),
    "message_thread_id": ("message thread not found", "TOPIC_CLOSED", "TOPIC_DELETED"),
}
_GATEWAY = (502, 504)  # a gateway lost the answer of the service: the message may have been sent
_PROXY = (401, 403, 404, 407, 408)  # of a proxy, which lets nothing through now, whatever we send
_ROLES: dict[str, PlaceRole] = {"creator": "owner", "administrator": "administrator"}


class Telegram(Platform):
    """`Telegram(token)`: a bot on Telegram. BotFather gives the token."""

    capabilities = Capabilities(edits=True, typing=True, previews=True, drafts=True, length=TEXT_LIMIT, media=ALL_MEDIA)

    def __init__(
        self,
        token: str = "",
        *,
        base_url: str = "",
        poll: bool = True,
        webhook: str = "",
        listen: str = "127.0.0.1:8443",
        pace: Pace = Pace(),  # noqa: B008 (frozen)
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Make a bot. *token* and *base_url* are by default TERTULIA_TELEGRAM_TOKEN and TERTULIA_TELEGRAM_BASE_URL.

        With *webhook*, a public https address, updates are posted there, and taken at *listen*. Without *poll*, they
        come from elsewhere: from `tertulia.platforms.telegram.aiogram.router`.
        """
        token = token or os.environ.get("TERTULIA_TELEGRAM_TOKEN", "")
        base_url = base_url or os.environ.get("TERTULIA_TELEGRAM_BASE_URL", "") or DEFAULT_BASE_URL
        account = token.partition(":")[0]
        if not token:
            raise KeyMissing("Telegram needs the token that BotFather gives: set TERTULIA_TELEGRAM_TOKEN")
        if not (account.isascii() and account.isdigit() and token[len(account) + 1 :]):
            raise InvalidValue("the token of a Telegram bot is a number, a colon and letters, as BotFather gives it")
        if not re.match(r"https?://[^/]", base_url):
            raise InvalidValue(f"base_url is no address such as {DEFAULT_BASE_URL}: {base_url}")
        self.name = f"telegram-{account}"
        self.me = Author(id=account, name="")
        self._client = BotClient(token, base_url=base_url, pace=pace, sleep=sleep)
        self._account = Account(platform=self.name, id=int(account))
        self._is_polling = poll and not webhook
        self._webhook = webhook
        self._listen = listen
        self._secret = secret_of(token)
        self._sleep = sleep
        self._inbox: Inbox | None = None
        self._has_drafts = True  # until the service says that it has none

    @property
    def service(self) -> str:
        return "telegram"

    async def open(self) -> None:
        """Ask who we are, until the service says it, or that it does not know the token."""
        user = await self._retry(self._client.me)
        self.me = Author(id=str(user.id), name=name_of(user), username=user.username)
        self._account = replace(self._account, username=user.username or "")

    async def close(self) -> None:
        await self._client.aclose()

    async def run(self, inbox: Inbox) -> None:
        self._inbox = inbox
        try:
            for update in await inbox.unread():  # a newer version may read what an older one could not
                if changes := self._changes(update.raw, again=True):
                    await inbox.apply(changes, key=update.key, raw=update.raw)
            if self._webhook:
                await self._serve(inbox)
            elif self._is_polling:
                await self._poll(inbox)
            else:
                await asyncio.Event().wait()
        finally:
            self._inbox = None

    def is_shared(self, place: Place) -> bool:
        """Supergroups and channels: elsewhere each bot has ids of its own."""
        return _SHARED.fullmatch(place.id) is not None

    def capabilities_in(self, place: Place) -> Capabilities:
        """A preview that vanishes in direct chats; a message that is edited elsewhere, less often."""
        if place.kind == "direct":
            return replace(self.capabilities, drafts=False, preview_interval=1.0)
        return replace(self.capabilities, previews=False, preview_interval=3.0)

    def split(self, reply: Reply) -> Sequence[Reply]:
        """Return a reply for each message: texts within the limit, then media, the only one with a short caption."""
        alone = reply.media[0] if len(reply.media) == 1 else None
        if alone and alone.media_kind not in _WITHOUT_CAPTION and len(render(reply.text).text) <= CAPTION_LIMIT:
            return (reply,)
        texts = split_markdown(reply.text, TEXT_LIMIT) if reply.text.strip() else []
        parts = [replace(reply, text=text, media=()) for text in texts]
        parts += [replace(reply, text="", media=(media,)) for media in reply.media]
        return [parts[0], *(replace(part, reply_to=None) for part in parts[1:])] if parts else (reply,)

    async def send(self, delivery: Delivery) -> str:
        reply, chat = delivery.reply, delivery.reply.place.id
        is_preview = delivery.kind == "draft" and delivery.edits is not None
        if is_preview and not self._client.is_free(chat):
            raise NotSent("there is no turn for a preview now")
        if delivery.edits is not None:
            params = {"chat_id": chat, "message_id": int(delivery.edits), **text_fields(reply.text)}
            return await self._post("editMessageText", params, reply.place) or delivery.edits
        params = {"chat_id": chat, **reply_fields(reply)}
        if delivery.plain:
            return await self._post("sendMessage", {**params, "text": plain_text(reply.text, TEXT_LIMIT)}, reply.place)
        if not reply.media:
            return await self._post("sendMessage", {**params, **text_fields(reply.text)}, reply.place)
        return await self._send_media(reply, params)

    async def fetch(self, media: Media, *, limit: int) -> bytes:
        """Download a file. The Bot API gives files of at most 20 MB."""
        return await self._client.file(media.file_id or "", limit=limit)

    async def sticker_fault(self, set_name: str, name: str) -> str | None:
        try:
            await self._sticker(set_name, name)
        except SendRefused as error:
            return str(error)
        except NotSent as error:
            log.info("nobody knows whether there is the sticker %r of %r: %s", name, set_name, error)
        return None

    async def preview(self, place: Place, run_id: str, text: str) -> None:
        thread = thread_field(place)
        if place.kind == "direct" and self._has_drafts:
            draft = {"draft_id": zlib.crc32(run_id.encode()) or 1, "can_stop": True, **text_fields(text)}
            try:
                await self._client.show("sendMessageDraft", {"chat_id": place.id, **thread, **draft})
                return
            except ApiError as error:
                if error.code not in (400, 404):
                    raise
                self._has_drafts = error.code != 404  # an older server
        if not text:
            typing = {"chat_id": place.id, **thread, "action": "typing"}
            await self._client.show("sendChatAction", typing)

    async def announce(self, commands: Sequence[CommandInfo], *, owners: Sequence[str]) -> None:
        """Set the menu of commands: for everybody, for administrators of groups, and for the owners."""
        for menu in command_menus(commands, owners):
            try:
                await self._retry(partial(self._set, "setMyCommands", menu))
            except InvalidValue as error:  # for an owner who has not written to the bot yet
                log.info("a menu of commands is not set: %s", error)

    async def role(self, place: Place, author: Author) -> PlaceRole:
        if place.kind == "direct":
            return "owner"
        if author.id == place.id:  # an administrator who writes as the group itself
            return "administrator"
        if not author.id.isdecimal():  # a channel, or somebody unknown
            return "member"
        member = await self._client.member(place.id, author.id)
        return _ROLES.get(member.status, "member")

    async def _poll(self, inbox: Inbox) -> None:
        """Ask for updates for ever. Those of an answer are stored before the next question confirms them."""
        offset = failures = 0
        while True:
            try:
                updates = await self._client.updates(offset, types.ALLOWED_UPDATES)
            except (NotSent, ConnectionLost, ResponseUnreadable, TimedOut, ApiError) as error:
                failures += 1
                await self._recover(failures, error)
                continue
            failures, self.trouble = 0, None
            await asyncio.gather(*[self.apply(inbox, number, raw) for number, raw in updates])
            if updates:
                offset = updates[-1][0] + 1

    async def apply(self, inbox: Inbox, number: int, raw: bytes) -> None:
        """Store an update, and what it means."""
        await inbox.apply(self._changes(raw), key=str(number), raw=raw)

    async def _serve(self, inbox: Inbox) -> None:
        """Take updates that Telegram posts, until cancelled."""
        app = WebhookApp(self._secret, partial(self.apply, inbox))
        tasks = [asyncio.create_task(serve(app, self._listen)), asyncio.create_task(self._keep_webhook())]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()  # once: it waits for posts under way
            await asyncio.wait(tasks)
        for task in ended:
            task.result()

    async def _keep_webhook(self) -> None:
        """Set the webhook, and look after it: without it no updates come."""
        kinds = list(types.ALLOWED_UPDATES)
        params = {"url": self._webhook, "secret_token": self._secret, "allowed_updates": kinds}
        told = (await self._retry(self._client.webhook)).last_error_date
        await self._retry(partial(self._set, "setWebhook", params))
        while True:
            await self._sleep(WEBHOOK_CHECK)
            found = await self._retry(self._client.webhook)
            if found.url != self._webhook:
                log.warning("another program has removed the webhook of this bot: stop it, or give it another token")
                await self._retry(partial(self._set, "setWebhook", params))
            elif found.last_error_date > told:
                told = found.last_error_date
                log.warning("Telegram cannot post updates to %s: %s", self._webhook, found.last_error_message)

    def _changes(self, raw: bytes, *, again: bool = False) -> list[Change]:
        """Return what an update means; nothing where it cannot be read. It is stored then, and read again later."""
        try:
            changes = changes_of(raw, self._account)
        except Exception as error:  # noqa: BLE001 (an odd update must not stand in the way of others)
            changes, why = [], f": {error}"
        else:
            why = ""
        if not changes and not again:
            log.warning("an update of the kind %s cannot be read, and is stored%s", kind_of(raw), why)
        return changes

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Call the service until it answers, whatever comes instead; `KeyRefused` is final."""
        for failures in count(1):
            try:
                answer = await work()
            except (NotSent, ConnectionLost, ResponseUnreadable, TimedOut, ApiError) as error:
                await self._pause(failures, error)
            else:
                self.trouble = None
                return answer
        raise AssertionError

    async def _set(self, method: str, params: Mapping[str, Any]) -> None:
        """Set something; raise `InvalidValue` where the service says that it is wrong."""
        try:
            await self._client.call(method, params)
        except ApiError as error:
            if not error.is_bad_request:
                raise
            raise InvalidValue(f"Telegram refuses {method} of {self.name}: {error}") from error

    async def _recover(self, failures: int, error: Exception) -> None:
        """Do what lets updates come again: wait, or remove the webhook that takes them."""
        if isinstance(error, ApiError) and error.code == 409:
            if error.tells("webhook is active"):
                log.warning("the webhook of the bot is removed: updates are polled for")
                await self._client.call("deleteWebhook")
                return
            log.warning("another program gets the updates of this bot: stop it, or give it another token")
            await self._wait(failures, error, CONFLICT_PAUSE)
            return
        await self._pause(failures, error)

    async def _pause(self, failures: int, error: Exception) -> None:
        pause = getattr(error, "retry_after", None) or backoff(failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
        log.warning("Telegram is asked again in %g s: %s", pause, error)
        await self._wait(failures, error, pause)

    async def _wait(self, failures: int, error: Exception, pause: float) -> None:
        at = datetime.now(UTC)
        since = self.trouble.since if self.trouble and failures > 1 else at
        self.trouble = Trouble(since=since, why=reason_of(error), retry_at=at + timedelta(seconds=pause))
        await self._sleep(pause)

    async def _send_media(self, reply: Reply, params: dict[str, Any]) -> str:
        """Send a file by its kind; as a document where Telegram refuses that, and in words where it refuses both."""
        media = reply.media[0]
        method, field = method_of(media)
        caption = text_fields(reply.text, "caption", "caption_entities") if reply.text.strip() else {}
        if media.sticker:
            try:
                content = await self._sticker(*media.sticker)
                return await self._post(method, {**params, **caption, field: content}, reply.place)
            except SendRefused as error:
                if error.left:
                    raise
                log.info("a sticker goes as its emoji: %s", error)
        sendable = media.data and len(media.data) <= UPLOAD_LIMIT
        for way, name in dict.fromkeys([(method, field), DOCUMENT]) if sendable else ():
            try:
                return await self._post(way, {**params, **caption, name: ATTACHED}, reply.place, files(media))
            except SendRefused as error:
                if error.left:
                    raise
                log.info("%s is not sent by %s: %s", media.media_kind, way, error)
        words = "\n\n".join(filter(None, [reply.text, media_as_text(media)]))
        return await self._post("sendMessage", {**params, **text_fields(words)}, reply.place)

    async def _sticker(self, set_name: str, name: str) -> str:
        """Return the file id of a sticker that the model named by its set and its emoji or id."""
        try:
            found = await self._client.stickers(set_name)
        except ApiError as error:
            if error.code == 429 or error.code >= 500 or isinstance(error, GatewayError):
                raise NotSent(str(error), retry_after=error.retry_after) from error
            raise SendRefused(f"there is no set of stickers {set_name!r}") from error
        except (KeyRefused, ConnectionLost, TimedOut, ResponseUnreadable) as error:  # nothing was sent yet
            raise NotSent(str(error)) from error
        if file_id := sticker_file(found, name):
            return file_id
        raise SendRefused(f"the set {set_name!r} has no sticker {name!r}; it has {emojis_of(found)}")

    async def _post(
        self, method: str, params: dict[str, Any], place: Place, files: dict[str, tuple[str, bytes]] | None = None
    ) -> str:
        """Post, and once more without what the service refuses; return the id of the message, or nothing."""
        while True:
            try:
                posted = await self._client.post(method, params, files=files)
                return str(posted) if posted else ""
            except KeyRefused as error:  # the token was revoked
                raise NotSent(str(error)) from error
            except ApiError as error:
                if error.tells("message is not modified"):  # it was edited before, and the receipt was lost
                    return ""
                if refused := [name for name, texts in _WITHOUT.items() if name in params and error.tells(*texts)]:
                    log.info("%s is sent without %s: %s", method, " and ".join(refused), error)
                    params = {name: value for name, value in params.items() if name not in refused}
                    continue
                raise await self._outcome(error, place) from error

    async def _outcome(self, error: ApiError, place: Place) -> Exception:
        """Return the error that tells the engine what becomes of a message that was not posted."""
        if error.migrate_to and self._inbox is not None:
            moved = PlaceMigrated(
                old=replace(place, thread=None), new=replace(place, id=str(error.migrate_to), thread=None)
            )
            await self._inbox.apply([moved], key=f"migration of {place.id}")
        if error.code in _GATEWAY:
            return ConnectionLost(f"the outcome is unknown: {error}")
        is_on_the_way = isinstance(error, GatewayError) and error.code in _PROXY
        if error.migrate_to or error.code == 429 or error.code >= 500 or is_on_the_way:
            return NotSent(str(error), retry_after=error.retry_after)
        return SendRefused(f"Telegram refuses it: {error}", left=error.code in (400, 403) and error.tells(*_GONE))
