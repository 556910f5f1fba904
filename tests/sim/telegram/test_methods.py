"""Routing, commands, chats, members, reactions, buttons, files and flood control."""

import httpx2
import pytest

from sim.telegram.api import Api
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim, image

PNG = ("a.png", image(), "image/png")


@pytest.fixture
def alice(sim: TelegramSim) -> SimUser:
    return sim.user("Alice")


@pytest.fixture
def chat(sim: TelegramSim, alice: SimUser) -> SimChat:
    return sim.private(alice)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/", "404 Not Found"),
        ("/botany", "404 Not Found"),
        ("/bot0:x/getMe", "401 Unauthorized: invalid token specified"),
        ("/botx/getMe", "401 Unauthorized: invalid token specified"),
        (f"/bot1:{'x' * 90}/getMe", "401 Unauthorized: invalid token specified"),
        ("/botx:y/getMe", "421 Misdirected Request: unallowed token specified"),
        ("/bot1:x/getMe", "401 Unauthorized"),
        ("/file/bot1:x/a", "401 Unauthorized"),
    ],
)
async def test_routing(api: Api, path: str, answer: str) -> None:
    response = await api.client.get(path)

    assert f"{response.status_code} {response.json()['description']}" == answer


async def test_methods_are_found_in_any_case_and_with_any_kind_of_body(api: Api, chat: SimChat) -> None:
    base = f"/bot{api.token}"
    assert (await api.client.get(f"{base}/GETME")).json()["result"]["username"] == "tertulia_bot"
    assert await api.refusal("nothing") == "404 Not Found: method not found"

    await api.client.get(f"{base}/sendMessage", params={"chat_id": chat.id, "text": "in the address"})
    await api.client.post(f"{base}/sendMessage", data={"chat_id": str(chat.id), "text": "in a form"})
    await api.client.post(f"{base}/sendMessage", json={"chat_id": chat.id, "text": "in JSON"})
    await api.upload("sendMessage", {"x": PNG}, chat_id=chat.id, text="in a multipart form")

    assert chat.texts == ["in the address", "in a form", "in JSON", "in a multipart form"]


async def test_a_bot_that_logged_out_is_refused(api: Api) -> None:
    assert await api.result("close") is True
    assert await api.result("logOut") is True
    assert await api.refusal("getMe") == "400 Logged out"


async def test_commands_are_kept_for_each_scope_and_language(api: Api, sim: TelegramSim, alice: SimUser) -> None:
    group = sim.group("G", [alice])
    english, ukrainian = [{"command": "help", "description": "Help"}], [{"command": "help", "description": "Поміч"}]
    here = {"type": "chat_member", "chat_id": group.id, "user_id": alice.id}
    await api.result("setMyCommands", commands=english)
    await api.result("setMyCommands", commands=ukrainian, language_code="uk", scope={"type": "all_private_chats"})
    await api.result("setMyCommands", commands=[{"command": "/stop", "description": "Stop"}], scope=here)

    assert await api.result("getMyCommands") == english
    assert await api.result("getMyCommands", language_code="uk") == []
    scope = {"type": "all_private_chats"}
    assert await api.result("getMyCommands", language_code="uk", scope=scope) == ukrainian
    assert await api.result("getMyCommands", scope=here) == [{"command": "stop", "description": "Stop"}]
    await api.result("deleteMyCommands")
    assert await api.result("getMyCommands") == []


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({"commands": {}}, "expected an Array of BotCommand"),
        ({"commands": [{"command": "x"}]}, "can't parse BotCommand: Can't find field \"description\""),
        ({"commands": [{"command": "Help", "description": "x"}]}, "BOT_COMMAND_INVALID"),
        ({"commands": [{"command": "x" * 33, "description": "x"}]}, "command length must not exceed 32"),
        ({"commands": [{"command": "x", "description": "x" * 257}]}, "command description length must not exceed 256"),
        ({"commands": [], "language_code": "ukr"}, "invalid language code specified"),
        ({"commands": [], "scope": {"type": "moon"}}, "can't parse BotCommandScope: Unsupported type specified"),
        ({"commands": [], "scope": {"type": "chat", "chat_id": 5}}, "chat not found"),
    ],
)
async def test_commands_that_are_refused(api: Api, params: dict[str, object], refusal: str) -> None:
    assert await api.refusal("setMyCommands", **params) == f"400 Bad Request: {refusal}"


async def test_members(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    bob, other = sim.user("Bob"), sim.add_bot("Other", username="other_bot")
    group = sim.group("G", [alice, bob, other])
    group.promote(other)
    group.promote(bob)

    async def status(user: SimUser) -> str:
        return str((await api.result("getChatMember", chat_id=group.id, user_id=user.id))["status"])

    assert [await status(one) for one in (alice, bob, sim.bot)] == ["creator", "administrator", "member"]
    administrators = await api.result("getChatAdministrators", chat_id=group.id)
    assert [one["user"]["first_name"] for one in administrators] == ["Alice", "Bob"]
    assert await api.result("getChatMemberCount", chat_id=group.id) == 4
    assert (await api.result("getChat", chat_id=group.id))["title"] == "G"
    assert await api.refusal("getChatMember", chat_id=group.id, user_id=9) == "400 Bad Request: user not found"
    await api.result("leaveChat", chat_id=group.id)
    assert await api.refusal("sendMessage", chat_id=group.id, text="x") == (
        "403 Forbidden: bot is not a member of the group chat"
    )


async def test_a_bot_is_told_what_happens_to_it(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    group = sim.group("G", [alice])
    alice.block_bot(chat)
    alice.unblock_bot(chat)
    group.promote(sim.bot)
    group.kick(sim.bot)
    group.add(sim.bot)

    changes = [
        (update["my_chat_member"]["old_chat_member"]["status"], update["my_chat_member"]["new_chat_member"]["status"])
        for update in await api.result("getUpdates")
        if "my_chat_member" in update
    ]
    assert changes == [
        ("member", "kicked"),
        ("kicked", "member"),
        ("member", "administrator"),
        ("administrator", "kicked"),
        ("kicked", "member"),
    ]


async def test_reactions(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    message = alice.send(chat, "hi")
    where = {"chat_id": chat.id, "message_id": message.id}
    thumb = {"type": "emoji", "emoji": "👍"}

    assert await api.result("setMessageReaction", **where, reaction=[thumb]) is True
    assert message.reactions == {sim.bot.id: [thumb]}
    odd = [{"type": "emoji", "emoji": "🧦"}]
    assert await api.refusal("setMessageReaction", **where, reaction=odd) == "400 Bad Request: REACTION_INVALID"
    assert await api.refusal("setMessageReaction", chat_id=chat.id, message_id=99, reaction=[thumb]) == (
        "400 Bad Request: message to react not found"
    )


async def test_a_button_is_pressed_and_answered_once(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    keyboard = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
    sent = await api.result("sendMessage", chat_id=chat.id, text="Sure?", reply_markup=keyboard)
    query = alice.press_button(chat, sent["message_id"], "y")

    (update,) = await api.result("getUpdates")
    assert (update["callback_query"]["id"], update["callback_query"]["data"]) == (query, "y")
    assert update["callback_query"]["message"]["reply_markup"] == keyboard
    assert await api.result("answerCallbackQuery", callback_query_id=query, text="ok") is True
    assert sim.answers == {query: "ok"}
    assert await api.refusal("answerCallbackQuery", callback_query_id=query) == (
        "400 Bad Request: query is too old and response timeout expired or query ID is invalid"
    )


async def test_a_file_is_sent_downloaded_and_sent_again(api: Api, alice: SimUser, chat: SimChat) -> None:
    answer = await api.upload("sendDocument", {"document": ("a.txt", b"words", "text/plain")}, chat_id=chat.id)
    document = answer["result"]["document"]

    file = await api.result("getFile", file_id=document["file_id"])
    downloaded = await api.client.get(f"/file/bot{api.token}/{file['file_path']}")
    again = await api.result("sendDocument", chat_id=chat.id, document=document["file_id"], caption="again")

    assert (document["file_name"], document["mime_type"], document["file_size"]) == ("a.txt", "text/plain", 5)
    assert file["file_path"].startswith("documents/file_")
    assert downloaded.content == b"words"
    assert (again["document"]["file_unique_id"], again["caption"]) == (document["file_unique_id"], "again")


async def test_each_kind_of_file(api: Api, chat: SimChat) -> None:
    for kind in ("photo", "document", "voice", "audio", "video", "animation", "sticker", "video_note"):
        name = "send" + kind.title().replace("_", "")
        answer = await api.upload(name, {kind: PNG}, chat_id=chat.id)
        assert answer["ok"], answer
        assert kind in answer["result"]

    assert len(chat.messages) == 8


async def test_files_that_are_refused(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    long = alice.send_document(chat, size=(20 << 20) + 1)
    (update,) = await api.result("getUpdates")
    long_id = update["message"]["document"]["file_id"]
    other = Api(api.client, sim.add_bot("Other", username="other_bot").token)

    async def refusal(method: str, **params: object) -> str:
        return await api.refusal(method, chat_id=chat.id, **params)

    assert long.content["document"]["file_name"] == "file.txt"
    assert await refusal("sendPhoto") == "400 Bad Request: there is no photo in the request"
    assert await refusal("sendPhoto", photo="nonsense") == "400 Bad Request: wrong file identifier/HTTP URL specified"
    assert await refusal("sendPhoto", photo=long_id) == "400 Bad Request: can't use file of type Document as Photo"
    assert await api.refusal("getFile", file_id=long_id) == "400 Bad Request: file is too big"
    assert await other.refusal("getFile", file_id=long_id) == "400 Bad Request: invalid file_id"
    broken = await api.upload("sendPhoto", {"photo": ("a.png", b"no image", "image/png")}, chat_id=chat.id)
    assert broken["description"] == "Bad Request: IMAGE_PROCESS_FAILED"
    narrow = await api.upload("sendPhoto", {"photo": ("a.png", image(2000, 50), "image/png")}, chat_id=chat.id)
    assert narrow["description"] == "Bad Request: PHOTO_INVALID_DIMENSIONS"
    empty = await api.upload("sendPhoto", {"photo": ("a.png", b"", "image/png")}, chat_id=chat.id)
    assert empty["description"] == "Bad Request: file must be non-empty"


async def test_an_album_is_messages_with_one_id(api: Api, chat: SimChat) -> None:
    media = [
        {"type": "photo", "media": "attach://one", "caption": "two *photos*", "parse_mode": "MarkdownV2"},
        {"type": "photo", "media": "attach://two"},
    ]
    answer = await api.upload("sendMediaGroup", {"one": PNG, "two": PNG}, chat_id=chat.id, media=media)

    first, second = answer["result"]
    assert first["media_group_id"] == second["media_group_id"]
    assert (first["caption"], first["caption_entities"]) == (
        "two photos",
        [{"type": "bold", "offset": 4, "length": 6}],
    )
    assert "caption" not in second


@pytest.mark.parametrize(
    ("media", "refusal"),
    [
        ("", 'parameter "media" is required'),
        ("{}", "expected an Array of InputMedia"),
        ([{"type": "photo"}], "can't parse InputMedia: media not found"),
        ([{"type": "sticker", "media": "x"}], 'can\'t parse InputMedia: type "sticker" is unsupported'),
        (
            [{"type": "animation", "media": "x"}],
            "can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup",
        ),
        ([{"type": "photo", "media": "x"}], "wrong file identifier/HTTP URL specified"),
    ],
)
async def test_albums_that_are_refused(api: Api, chat: SimChat, media: object, refusal: str) -> None:
    assert await api.refusal("sendMediaGroup", chat_id=chat.id, media=media) == f"400 Bad Request: {refusal}"


async def test_flood_control() -> None:
    async with TelegramSim(flood=True) as sim, httpx2.AsyncClient(base_url=sim.url) as client:
        api, alice = Api(client, sim.token), sim.user("Alice")
        chat, group = sim.private(alice), sim.group("G", [alice])
        await api.result("sendMessage", chat_id=chat.id, text="1")
        assert await api.refusal("sendMessage", chat_id=chat.id, text="2") == "429 Too Many Requests: retry after 1"
        sim.clock.advance(1)
        await api.result("sendMessage", chat_id=chat.id, text="2")
        for _ in range(20):
            sim.clock.advance(1)
            await api.result("sendMessage", chat_id=group.id, text="x")
        sim.clock.advance(1)

        answer = await api("sendMessage", chat_id=group.id, text="x")

    assert answer["parameters"] == {"retry_after": 40}
    assert len(chat.messages) == 2
