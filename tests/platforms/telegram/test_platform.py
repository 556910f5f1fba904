"""Telegram as a platform, judged by its simulator."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from orjson import Fragment

from platforms.telegram.world import AT_ONCE, short_sleep, telegram
from tertulia.errors import ConnectionLost, InvalidValue, KeyMissing, KeyRefused, NotSent, SendRefused
from tertulia.messages import Author, Message, Place, Reply
from tertulia.parts import Media
from tertulia.platform import Change, CommandInfo, Delivery, PlaceMigrated, Received, Trouble, Update
from tertulia.platforms.telegram.client import BotClient
from tertulia.platforms.telegram.parameters import files, method_of
from tertulia.platforms.telegram.platform import Telegram
from tertulia.sim.server import Served
from tertulia.sim.telegram import SimUser, TelegramSim, image


class Changes:
    """An inbox that keeps what it is given."""

    def __init__(self, *unread: Update) -> None:
        self.applied: list[tuple[str, Sequence[Change], bytes | None]] = []
        self._unread = unread
        self._news = asyncio.Event()

    async def apply(self, changes: Sequence[Change], *, key: str, raw: bytes | None = None) -> bool:
        self.applied.append((key, changes, raw))
        self._news.set()
        return True

    async def last(self, place: Place) -> Message | None:
        return None

    async def unread(self) -> Sequence[Update]:
        return self._unread

    async def until(self, number: int) -> None:
        while len(self.applied) < number:
            self._news.clear()
            await self._news.wait()

    @property
    def texts(self) -> list[str]:
        return [change.message.text for _, found, _ in self.applied for change in found if isinstance(change, Received)]


@pytest.fixture
async def sim() -> AsyncIterator[TelegramSim]:
    async with TelegramSim() as served:
        yield served


@pytest.fixture
async def bot(sim: TelegramSim) -> AsyncIterator[Telegram]:
    platform = telegram(sim)
    await platform.open()
    yield platform
    await platform.close()


@pytest.fixture
def olha(sim: TelegramSim) -> SimUser:
    return sim.user("Olha", language_code="uk")


class Running:
    """`async with Running(bot, inbox):` runs the platform."""

    def __init__(self, platform: Telegram, inbox: Changes) -> None:
        self._platform, self._inbox = platform, inbox

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._platform.run(self._inbox))

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


def reply(chat: Any, text: str = "hello", **fields: Any) -> Reply:
    kind = fields.pop("kind", "direct" if chat.id > 0 else "group")
    thread = fields.pop("thread", None)
    return Reply(place=Place(platform="telegram", id=str(chat.id), kind=kind, thread=thread), text=text, **fields)


def delivery(made: Reply, **fields: Any) -> Delivery:
    return Delivery(**{"id": "d1", "run_id": None, "kind": "answer", "reply": made} | fields)


async def test_the_account_is_asked_for_and_its_name_has_the_id_of_the_token(sim: TelegramSim, bot: Telegram) -> None:
    assert (bot.name, bot.service) == (f"telegram-{sim.bot.id}", "telegram")
    assert bot.me == Author(id=str(sim.bot.id), name="Tertulia", username="tertulia_bot")


BAD_TOKENS = {
    "": (KeyMissing, "BotFather"),
    "nonsense": (InvalidValue, "a number, a colon and letters"),
    "12:": (InvalidValue, "a number"),
}


@pytest.mark.parametrize("token", BAD_TOKENS)
def test_what_is_no_token_is_refused_at_once(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERTULIA_TELEGRAM_TOKEN", raising=False)
    kind, words = BAD_TOKENS[token]

    with pytest.raises(kind, match=words):
        Telegram(token)


def test_token_and_address_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_TELEGRAM_TOKEN", "42:secret")

    assert Telegram().name == "telegram-42"


async def test_a_token_that_telegram_does_not_know_is_said_without_it(sim: TelegramSim) -> None:
    unknown = telegram(sim, token="42:secret-of-nobody")

    with pytest.raises(KeyRefused) as caught:
        await unknown.open()
    await unknown.close()
    assert "secret-of-nobody" not in str(caught.value)
    assert "BotFather" in str(caught.value)


ODD_STARTS = {  # what is no "this token is unknown" of the Bot API
    "a page": (200, b"<html>log in</html>"),
    "nothing": (200, b""),
    "no user": (200, b'{"ok":true,"result":{}}'),
    "other JSON": (200, b"[]"),
    "a refusal without a code": (200, b'{"ok":false}'),
    "a redirect": (302, b""),
    "400 of the service": (400, b'{"ok":false,"error_code":400,"description":"Bad Request"}'),
    "401 of a proxy": (401, b"<html>Unauthorized</html>"),
    "401 of a proxy in JSON": (401, b'{"message":"Unauthorized"}'),
    "403 of a proxy": (403, b"<html>Forbidden</html>"),
    "404 of a proxy": (404, b"Not Found"),
    "404 of a proxy in JSON": (404, b'{"description":"Not Found"}'),
    "407 of a proxy": (407, b""),
    "409": (409, b'{"ok":false,"error_code":409,"description":"Conflict"}'),
    "429": (429, b'{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":1}}'),
    "502": (502, b"<html>Bad Gateway</html>"),
}


async def test_no_odd_answer_at_a_start_ends_the_bot(caplog: pytest.LogCaptureFixture) -> None:
    answers = list(ODD_STARTS.values())

    async def service(scope: Any, receive: Any, send: Any) -> None:
        status, body = answers.pop(0) if answers else (200, b'{"ok":true,"result":{"id":42,"first_name":"Bot"}}')
        await send({"type": "http.response.start", "status": status, "headers": [(b"location", b"/elsewhere")]})
        await send({"type": "http.response.body", "body": body})

    async with Served(service) as served:
        bot = Telegram("42:secret", base_url=served.url, sleep=short_sleep)
        await bot.open()
        await bot.close()

    assert bot.me == Author(id="42", name="Bot")
    assert caplog.text.count("Telegram is asked again in") == len(ODD_STARTS)


@pytest.mark.parametrize("code", [401, 404])
async def test_a_definite_refusal_of_the_token_is_final(code: int) -> None:
    words = {401: "Unauthorized", 404: "Not Found"}[code]
    body = f'{{"ok":false,"error_code":{code},"description":"{words}"}}'.encode()

    async def service(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": code, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async with Served(service) as served:
        bot = Telegram("42:secret", base_url=served.url, sleep=short_sleep)
        with pytest.raises(KeyRefused):
            await bot.open()
        await bot.close()


async def test_the_token_is_in_no_line_of_the_log(
    sim: TelegramSim, bot: Telegram, olha: SimUser, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await bot.send(delivery(reply(sim.private(olha))))

    assert "HTTP Request" in caplog.text
    assert sim.token not in caplog.text


async def test_updates_are_confirmed_once_they_are_stored(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat, inbox = sim.private(olha), Changes()
    olha.send(chat, "one")
    olha.send(chat, "two")

    async with Running(bot, inbox):
        await inbox.until(2)
        await sim.until(lambda: sim.bot.pending == 0)

    assert inbox.texts == ["one", "two"]
    assert [call.params.get("offset") for call in sim.calls if call.method == "getUpdates"][:2] == [
        0,
        int(inbox.applied[-1][0]) + 1,
    ]


async def test_an_update_that_cannot_be_read_is_stored_and_passed_over(
    sim: TelegramSim, bot: Telegram, olha: SimUser, caplog: pytest.LogCaptureFixture
) -> None:
    chat, inbox = sim.private(olha), Changes()
    olha.send(chat, "one")
    sim.inject({"message": {"message_id": "five", "chat": {"id": 7}}})
    sim.inject({"hologram": {"id": 1}})
    olha.send(chat, "two")

    async with Running(bot, inbox):
        await inbox.until(4)

    assert inbox.texts == ["one", "two"]
    assert [bool(changes) for _, changes, _ in inbox.applied] == [True, False, False, True]
    assert "an update of the kind hologram cannot be read" in caplog.text


async def test_half_a_character_in_one_update_does_not_stand_in_the_way_of_others(
    sim: TelegramSim, bot: Telegram, olha: SimUser, caplog: pytest.LogCaptureFixture
) -> None:
    chat, inbox = sim.private(olha), Changes()
    olha.send(chat, "one")
    sim.inject({"message": Fragment(rb'{"message_id":5,"chat":{"id":7},"text":"\ud800"}')})
    olha.send(chat, "two")

    async with Running(bot, inbox):
        await inbox.until(3)

    assert inbox.texts == ["one", "two"]
    assert "an update of the kind message cannot be read" in caplog.text


async def test_what_an_older_version_could_not_read_is_read_again(bot: Telegram) -> None:
    raw = b'{"update_id":7,"message":{"message_id":5,"date":1,"chat":{"id":7,"type":"private"},"text":"late"}}'
    inbox = Changes(Update(key="7", raw=raw), Update(key="8", raw=b'{"update_id":8,"hologram":{}}'))

    async with Running(bot, inbox):
        await inbox.until(1)

    assert inbox.texts == ["late"]


async def test_two_programs_on_one_token_are_told_of_each_other(
    sim: TelegramSim, olha: SimUser, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Trouble] = []

    async def pause(seconds: float) -> None:
        assert ours.trouble
        told.append(ours.trouble)

    ours = Telegram(sim.token, base_url=sim.url, pace=AT_ONCE, sleep=pause)
    await ours.open()
    sim.fail(409, times=2, method="getUpdates")
    inbox = Changes()
    olha.send(sim.private(olha), "one")

    async with Running(ours, inbox):
        await inbox.until(1)

    assert "another program gets the updates of this bot" in caplog.text
    assert [(one.since, "Conflict" in one.why) for one in told] == [(told[0].since, True)] * 2
    assert ours.trouble is None
    await ours.close()


TROUBLE: list[Any] = [429, 500, 502, "request lost"]


@pytest.mark.parametrize("what", TROUBLE)
async def test_polling_survives_what_the_service_does(
    sim: TelegramSim, bot: Telegram, olha: SimUser, what: Any
) -> None:
    sim.fail(what, times=3, method="getUpdates")
    inbox = Changes()
    olha.send(sim.private(olha), "one")

    async with Running(bot, inbox):
        await inbox.until(1)

    assert inbox.texts == ["one"]


async def test_a_text_goes_out_with_entities_and_no_parse_mode(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)
    asked = olha.send(chat, "how?")

    sent = await bot.send(delivery(reply(chat, "so: **bold** `x`", reply_to=str(asked.id))))

    (message,) = chat.of(sim.bot)
    assert (str(message.id), message.text, message.reply_to) == (sent, "so: bold x", asked.id)
    assert message.entities == [
        {"type": "bold", "offset": 4, "length": 4},
        {"type": "code", "offset": 9, "length": 1},
    ]
    assert "parse_mode" not in sim.calls[-1].params


async def test_an_edit_replaces_our_message_and_the_same_one_again_counts_as_sent(
    sim: TelegramSim, bot: Telegram, olha: SimUser
) -> None:
    chat = sim.private(olha)
    first = await bot.send(delivery(reply(chat, "one")))

    edited = [await bot.send(delivery(reply(chat, "two"), edits=first)) for _ in range(2)]

    assert edited == [first, first]
    assert chat.texts == ["two"]


async def test_in_a_topic_it_answers_there_and_in_general_without_a_number(
    sim: TelegramSim, bot: Telegram, olha: SimUser
) -> None:
    forum = sim.group("Forum", [olha], forum=True)
    topic = forum.add_topic("Tea")

    await bot.send(delivery(reply(forum, "there", thread=str(topic.id))))
    await bot.send(delivery(reply(forum, "here", thread="1")))

    assert [(one.text, one.topic) for one in forum.of(sim.bot)] == [("there", topic.id), ("here", None)]


async def test_a_refused_reply_or_topic_is_left_out_once(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    forum = sim.group("Forum", [olha], forum=True)
    topic = forum.add_topic("Tea")
    forum.close_topic(topic)

    await bot.send(delivery(reply(forum, "one", reply_to="999")))
    await bot.send(delivery(reply(forum, "two", thread=str(topic.id))))
    await bot.send(delivery(reply(forum, "three", thread="999")))

    assert [(one.text, one.topic, one.reply_to) for one in forum.of(sim.bot)] == [
        ("one", None, None),
        ("two", None, None),
        ("three", None, None),
    ]


async def test_what_was_refused_is_sent_without_markup(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)

    await bot.send(delivery(reply(chat, "**bold** and `code`" + "!" * 5_000), plain=True))

    (shown,) = chat.of(sim.bot)
    assert (shown.text[:14], shown.text[-2:], len(shown.text), shown.entities) == ("bold and code!", "!…", 4096, [])


async def test_refused_entities_are_left_out_once(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)
    sim.fail(400, description="Bad Request: can't parse entities: entity begins in a middle of a UTF-16 symbol")

    await bot.send(delivery(reply(chat, "so **bold**")))

    assert [(one.text, one.entities) for one in chat.of(sim.bot)] == [("so bold", [])]


async def test_a_busy_service_is_asked_later_and_nothing_is_sent(
    sim: TelegramSim, bot: Telegram, olha: SimUser
) -> None:
    chat = sim.private(olha)
    sim.fail("busy", retry_after=7)

    with pytest.raises(NotSent) as caught:
        await bot.send(delivery(reply(chat)))

    assert caught.value.retry_after == 7
    assert chat.texts == []


@pytest.mark.parametrize("code", [502, 504])
async def test_a_gateway_that_lost_the_answer_leaves_the_outcome_unknown(
    sim: TelegramSim, bot: Telegram, olha: SimUser, code: int
) -> None:
    sim.fail(code)

    with pytest.raises(ConnectionLost, match="the outcome is unknown"):
        await bot.send(delivery(reply(sim.private(olha))))


async def test_with_a_token_that_was_revoked_nothing_is_sent(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    sim.fail(401)

    with pytest.raises(NotSent, match="BotFather"):
        await bot.send(delivery(reply(sim.private(olha))))


@pytest.mark.parametrize("address", ["file:///etc/passwd", "attach://other", "/etc/passwd", "AgACAgIAAx"])
async def test_a_file_of_the_server_is_not_sent(sim: TelegramSim, bot: Telegram, olha: SimUser, address: str) -> None:
    media = Media(media_kind="document", unique_id="d", uri=address)

    await bot.send(delivery(reply(sim.private(olha), "", media=(media,))))

    assert [one.text for one in sim.private(olha).of(sim.bot)] == ["[document]"]
    assert not any(call.method == "sendDocument" for call in sim.calls)


async def test_an_address_is_a_link_since_no_server_of_telegram_fetches_for_us(
    sim: TelegramSim, bot: Telegram, olha: SimUser
) -> None:
    media = Media(media_kind="photo", unique_id="p", uri="http://nas/cat.png", rendered_text="a cat")

    await bot.send(delivery(reply(sim.private(olha), "look", media=(media,))))

    assert [one.text for one in sim.private(olha).of(sim.bot)] == ["look\n\nhttp://nas/cat.png"]


@pytest.mark.parametrize(
    ("kind", "mime", "label", "method", "name"),
    [
        ("photo", "image/png", None, "sendPhoto", "photo.png"),
        ("image", "image/jpeg", None, "sendPhoto", "image.jpg"),
        ("photo", "image/gif", None, "sendAnimation", "photo.gif"),
        ("photo", "image/svg+xml", None, "sendDocument", "photo"),
        ("audio", "audio/mpeg", "Song", "sendAudio", "audio.mp3"),
        ("audio", "audio/wav", None, "sendDocument", "audio.wav"),
        ("voice", "audio/ogg", None, "sendVoice", "voice.ogg"),
        ("video", "video/webm", None, "sendDocument", "video.webm"),
        ("document", "application/pdf", "../../etc/report.pdf", "sendDocument", "report.pdf"),
        ("chart", "image/png", None, "sendDocument", "chart.png"),
    ],
)
def test_media_are_sent_by_their_kind_and_type(kind: str, mime: str, label: str | None, method: str, name: str) -> None:
    media = Media(media_kind=kind, unique_id="m", mime=mime, label=label, data=b"x")

    assert (method_of(media)[0], files(media)) == (method, {"file": (name, b"x")})


def test_a_photo_that_is_too_large_is_a_document() -> None:
    large = Media(media_kind="photo", unique_id="p", mime="image/png", data=bytes(10 * 2**20 + 1))

    assert method_of(large) == ("sendDocument", "document")


@pytest.mark.parametrize(
    ("data", "methods", "text"),
    [
        (image(8, 8), ["sendPhoto"], "look"),
        (image(2100, 100), ["sendPhoto", "sendDocument"], "look"),
        (image(9000, 1001), ["sendPhoto", "sendDocument"], "look"),
        (b"no picture", ["sendPhoto", "sendDocument"], "look"),
        (image(8, 8) + bytes(10 << 20), ["sendDocument"], "look"),
        (image(8, 8) + bytes(50 << 20), ["sendMessage"], "look\n\na cat"),
        (b"", ["sendMessage"], "look\n\na cat"),
    ],
    ids=["small", "long", "large", "damaged", "10 MB", "50 MB", "empty"],
)
async def test_a_photo_that_telegram_refuses_is_a_document_or_words(
    sim: TelegramSim, bot: Telegram, olha: SimUser, data: bytes, methods: list[str], text: str
) -> None:
    photo = Media(media_kind="photo", unique_id="p", mime="image/png", data=data, rendered_text="a cat")
    sim.calls.clear()

    await bot.send(delivery(reply(sim.private(olha), "look", media=(photo,))))

    assert [call.method for call in sim.calls] == methods
    assert [one.text for one in sim.private(olha).of(sim.bot)] == [text]


@pytest.mark.parametrize("kind", ["photo", "voice", "document"])
async def test_a_file_that_telegram_does_not_take_is_words(
    sim: TelegramSim, bot: Telegram, olha: SimUser, kind: str
) -> None:
    for method in ("sendPhoto", "sendVoice", "sendDocument"):
        sim.fail(400, method=method, description="Bad Request: not enough rights to send files to the chat")
    media = Media(media_kind=kind, unique_id="p", data=image(8, 8), rendered_text="a cat " * 1000)

    await bot.send(delivery(reply(sim.private(olha), "look", media=(media,))))

    (sent,) = sim.private(olha).of(sim.bot)
    assert sent.text.startswith("look\n\na cat a cat")
    assert len(sent.text) < 2048


async def test_a_long_text_goes_before_its_photo(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    photo = Media(media_kind="photo", unique_id="p", mime="image/png", data=image(8, 8))

    for part in bot.split(reply(sim.private(olha), "a" * 1025, media=(photo,))):
        await bot.send(delivery(part))

    assert [len(one.text or "") for one in sim.private(olha).of(sim.bot)] == [1025, 0]
    assert sim.calls[-1].method == "sendPhoto"


async def test_whoever_blocked_the_bot_is_left(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)
    olha.block_bot(chat)

    with pytest.raises(SendRefused) as caught:
        await bot.send(delivery(reply(chat)))

    assert caught.value.left


async def test_a_group_that_has_removed_the_bot_is_left(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    group = sim.group("Kitchen", [olha])
    group.kick(sim.bot)

    with pytest.raises(SendRefused) as caught:
        await bot.send(delivery(reply(group)))

    assert caught.value.left


async def test_a_group_that_has_moved_is_told_and_the_message_sent_later(
    sim: TelegramSim, bot: Telegram, olha: SimUser
) -> None:
    old, inbox = sim.group("Kitchen", [olha]), Changes()
    async with Running(bot, inbox):
        new = old.migrate()
        await inbox.until(2)
        with pytest.raises(NotSent):
            await bot.send(delivery(reply(old)))

    moves = [change for _, changes, _ in inbox.applied for change in changes if isinstance(change, PlaceMigrated)]
    assert {(move.old.id, move.new.id) for move in moves} == {(str(old.id), str(new.id))}


PHOTO = Media(media_kind="photo", unique_id="p", data=image(), mime="image/png")
VOICE = Media(media_kind="voice", unique_id="v", data=b"OggS voice", mime="audio/ogg")
STICKER = Media(media_kind="sticker", unique_id="s", data=image(), mime="image/webp")
FILE = Media(media_kind="document", unique_id="d", data=b"%PDF", mime="application/pdf")


async def test_photos_documents_voice_and_stickers_are_replies(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)

    for media in (PHOTO, VOICE, STICKER, FILE):
        await bot.send(delivery(reply(chat, "", media=(media,))))
    await bot.send(delivery(reply(chat, "our *cat*", media=(PHOTO,))))

    kinds = ("photo", "voice", "sticker", "document")
    messages = chat.of(sim.bot)
    assert [next(kind for kind in kinds if kind in one.content) for one in messages] == [*kinds, "photo"]
    assert (messages[-1].text, messages[-1].entities) == ("our cat", [{"type": "italic", "offset": 4, "length": 3}])


def test_a_reply_is_split_into_texts_and_media(monkeypatch: pytest.MonkeyPatch) -> None:
    bot, place = Telegram("42:secret"), Place(platform="telegram-42", id="7", kind="direct")
    captioned = Reply(place=place, text="see", media=(PHOTO,), reply_to="3")
    several = Reply(place=place, text="see", media=(PHOTO, FILE), reply_to="3")
    sticker = Reply(place=place, text="see", media=(STICKER,))

    assert bot.split(captioned) == (captioned,)
    assert [(one.text, one.media, one.reply_to) for one in bot.split(several)] == [
        ("see", (), "3"),
        ("", (PHOTO,), None),
        ("", (FILE,), None),
    ]
    assert [(one.text, one.media) for one in bot.split(sticker)] == [("see", ()), ("", (STICKER,))]


async def test_an_answer_in_a_direct_chat_is_previewed_with_a_stop_button(
    sim: TelegramSim, bot: Telegram, olha: SimUser
) -> None:
    chat = sim.private(olha)
    place = reply(chat).place

    await bot.preview(place, "run-1", "")
    await bot.preview(place, "run-1", "so **far")

    assert [(one.text, one.can_stop) for one in sim.drafts] == [("", True), ("so **far", True)]
    assert len({one.draft_id for one in sim.drafts}) == 1
    assert olha.press_stop(chat)


async def test_in_a_group_it_types(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    group = sim.group("Kitchen", [olha])

    await bot.preview(reply(group).place, "run-1", "")

    assert [one.action for one in sim.actions] == ["typing"]
    assert sim.drafts == []


async def test_the_roles_of_people(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    ann, ben = sim.user("Ann"), sim.user("Ben")
    group = sim.group("Kitchen", [olha, ann, ben])
    group.promote(ann)
    place = reply(group).place

    authors = [Author(id=str(one), name="?") for one in (olha.id, ann.id, ben.id, group.id)]
    assert [await bot.role(place, author) for author in authors] == [
        "owner",
        "administrator",
        "member",
        "administrator",
    ]
    assert await bot.role(reply(sim.private(ben)).place, authors[2]) == "owner"


@pytest.mark.parametrize("author_id", ["-1009", "unknown"])
async def test_a_channel_and_somebody_unknown_are_members_without_being_asked_for(
    sim: TelegramSim, bot: Telegram, olha: SimUser, author_id: str
) -> None:
    place = reply(sim.group("Kitchen", [olha])).place

    assert await bot.role(place, Author(id=author_id, name="?")) == "member"
    assert not any(call.method == "getChatMember" for call in sim.calls)


async def test_several_bots_have_names_and_updates_of_their_own(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    second = sim.add_bot("Second", username="second_bot")
    other = telegram(sim, token=second.token)
    await other.open()
    mine, theirs = Changes(), Changes()
    olha.send(sim.private(olha), "to the first")
    olha.send(sim.private(olha, second), "to the second")

    async with Running(bot, mine), Running(other, theirs):
        await mine.until(1)
        await theirs.until(1)
    await other.close()

    assert (mine.texts, theirs.texts) == (["to the first"], ["to the second"])
    assert {bot.name, other.name} == {f"telegram-{sim.bot.id}", f"telegram-{second.id}"}


MENU = [
    CommandInfo(name="help", who="everyone", descriptions={"": "this list", "uk": "цей список"}),
    CommandInfo(name="clear", who="administrators", descriptions={"": "begin anew", "uk": "почати знову"}),
    CommandInfo(name="stats", who="owners", descriptions={"": "numbers", "uk": "числа"}),
]


async def test_commands_are_announced_by_language_to_whom_they_are_for(
    sim: TelegramSim, bot: Telegram, olha: SimUser
) -> None:
    sim.private(olha)

    await bot.announce(MENU, owners=[str(olha.id), "99999"])

    set_menus = [call for call in sim.calls if call.method == "setMyCommands" and call.status == 200]
    owner = {"type": "chat", "chat_id": str(olha.id)}
    assert [
        (call.params["scope"], call.params["language_code"], [one["command"] for one in call.params["commands"]])
        for call in set_menus
        if call.params["scope"] in ({"type": "default"}, owner)
    ] == [
        ({"type": "default"}, "", ["help"]),
        ({"type": "default"}, "uk", ["help"]),
        (owner, "", ["help", "clear", "stats"]),
        (owner, "uk", ["help", "clear", "stats"]),
    ]


async def test_by_a_webhook_updates_come_without_being_asked_for(sim: TelegramSim, olha: SimUser) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    platform = Telegram(sim.token, base_url=sim.url, webhook=f"http://{listen}/hook", listen=listen, sleep=short_sleep)
    await platform.open()
    inbox = Changes()

    async with Running(platform, inbox):
        await sim.until(lambda: any(call.method == "setWebhook" and call.status == 200 for call in sim.calls))
        olha.send(sim.private(olha), "one")
        await inbox.until(1)
    await platform.close()

    assert inbox.texts == ["one"]
    assert not any(call.method == "getUpdates" for call in sim.calls)


def named(name: str) -> Media:
    return Media(media_kind="sticker", unique_id=name)


async def test_a_sticker_that_does_not_exist_goes_as_its_emoji(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)
    olha.send_sticker(chat, emoji="😺", set_name="Cats")

    for name in ("Dogs/🐶", "Cats/😀"):
        await bot.send(delivery(reply(chat, "", media=(named(name),))))

    assert [call.params["text"] for call in sim.calls if call.method == "sendMessage"] == ["🐶", "😀"]


async def test_a_model_is_told_why_there_is_no_such_sticker(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)
    for emoji in ("😺", "❤"):
        olha.send_sticker(chat, emoji=emoji, set_name="Cats")

    told = [await bot.sticker_fault(*name) for name in [("Dogs", "😀"), ("Cats", "😀"), ("Cats", "😺"), ("Cats", "❤️")]]
    away = Telegram(sim.token, base_url="http://127.0.0.1:9")

    assert told == ["there is no set of stickers 'Dogs'", "the set 'Cats' has no sticker '😀'; it has 😺 ❤", None, None]
    assert await away.sticker_fault("Dogs", "😀") is None  # nobody knows
    await away.close()


async def test_a_sticker_is_sent_by_its_set_and_its_emoji(sim: TelegramSim, bot: Telegram, olha: SimUser) -> None:
    chat = sim.private(olha)
    olha.send_sticker(chat, emoji="😺", set_name="Cats")
    wanted = olha.send_sticker(chat, emoji="😀", set_name="Cats")

    await bot.send(delivery(reply(chat, "", media=(named("Cats/😀"),))))

    assert len(chat.of(sim.bot)) == 1
    number = wanted.content["sticker"]["file"]
    assert sim.calls[-1].params["sticker"] == sim.world.files.shown(number, sim.bot.id)["file_id"]


async def test_a_webhook_that_another_program_removed_is_set_again(
    sim: TelegramSim, olha: SimUser, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    platform = Telegram(sim.token, base_url=sim.url, webhook=f"http://{listen}/hook", listen=listen, sleep=short_sleep)
    other = BotClient(sim.token, base_url=sim.url)
    await platform.open()
    inbox = Changes()

    async with Running(platform, inbox):
        await sim.until(lambda: any(call.method == "setWebhook" and call.status == 200 for call in sim.calls))
        sim.clock.advance(2)  # a webhook may be set once a second
        await other.call("deleteWebhook")
        olha.send(sim.private(olha), "one")
        await inbox.until(1)
    await other.aclose()
    await platform.close()

    assert inbox.texts == ["one"]
    assert "another program has removed the webhook" in caplog.text
