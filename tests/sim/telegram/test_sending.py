"""Messages that a bot posts, changes and deletes, and what is refused, in the order of the server."""

import httpx2
import pytest

from sim.telegram.api import Api
from tertulia.sim.telegram import SimChat, SimUser, TelegramSim


@pytest.fixture
def alice(sim: TelegramSim) -> SimUser:
    return sim.user("Alice")


@pytest.fixture
def chat(sim: TelegramSim, alice: SimUser) -> SimChat:
    return sim.private(alice)


async def test_a_message_is_posted_trimmed_and_with_its_entities(
    sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat
) -> None:
    asked = alice.send(chat, "Tea?")
    bold = {"type": "bold", "offset": 2, "length": 2}

    sent = await api.result(
        "sendMessage", chat_id=chat.id, text="  👍 yes \n", entities=[bold], reply_parameters={"message_id": asked.id}
    )

    assert (sent["text"], sent["entities"]) == ("👍 yes", [{"type": "bold", "offset": 0, "length": 2}])
    assert sent["reply_to_message"]["text"] == "Tea?"
    assert "reply_to_message" not in sent["reply_to_message"]
    assert [message.text for message in chat.of(sim.bot)] == ["👍 yes"]


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({}, "400 Bad Request: message text is empty"),
        ({"text": "x" * 32769}, "400 Bad Request: text is too long"),
        ({"text": "x", "parse_mode": "BBCode"}, "400 Bad Request: unsupported parse_mode"),
        ({"text": "x", "parse_mode": None}, "400 Bad Request: unsupported parse_mode"),
        ({"text": "x", "reply_parameters": None}, "400 Bad Request: object expected as reply parameters"),
        ({"text": "x"}, "400 Bad Request: chat_id is empty"),
        ({"text": "x", "chat_id": "nobody"}, "400 Bad Request: chat not found"),
        ({"text": "x", "chat_id": 99}, "400 Bad Request: chat not found"),
        ({"text": "x", "chat_id": "@nowhere"}, "400 Bad Request: chat not found"),
        ({"text": " \n ", "chat_id": 1001}, "400 Bad Request: text must be non-empty"),
        ({"text": "x" * 4097, "chat_id": 1001}, "400 Bad Request: message is too long"),
        ({"text": "x", "chat_id": 1001, "message_thread_id": 7}, "400 Bad Request: message thread not found"),
        (
            {"text": "x", "chat_id": 1001, "reply_parameters": {"message_id": 7}},
            "400 Bad Request: message to be replied not found",
        ),
    ],
)
async def test_what_is_refused(api: Api, chat: SimChat, params: dict[str, object], refusal: str) -> None:
    assert await api.refusal("sendMessage", **params) == refusal
    assert chat.messages == []


async def test_4096_code_points_are_not_too_long(api: Api, chat: SimChat) -> None:
    await api.result("sendMessage", chat_id=chat.id, text="👍" * 4096)

    assert chat.texts == ["👍" * 4096]


async def test_a_message_goes_without_a_reply_where_that_is_allowed(api: Api, chat: SimChat) -> None:
    reply = {"message_id": 7, "allow_sending_without_reply": True}

    assert "reply_to_message" not in await api.result("sendMessage", chat_id=chat.id, text="x", reply_parameters=reply)


async def test_an_edit_changes_the_message_and_its_former_text_is_kept(
    sim: TelegramSim, api: Api, chat: SimChat
) -> None:
    sent = await api.result("sendMessage", chat_id=chat.id, text="one")
    where = {"chat_id": chat.id, "message_id": sent["message_id"]}

    edited = await api.result("editMessageText", **where, text="two")

    assert edited["edit_date"] == sent["date"]
    assert (chat.texts, chat.messages[0].edits) == (["two"], [{"text": "one"}])
    assert await api.refusal("editMessageText", **where, text="two") == (
        "400 Bad Request: message is not modified: specified new message content and reply markup are exactly the "
        "same as a current content and reply markup of the message"
    )


async def test_edits_and_deletions_that_are_refused(api: Api, alice: SimUser, chat: SimChat) -> None:
    hers = alice.send(chat, "hers")

    assert await api.refusal("editMessageText", chat_id=chat.id, message_id=hers.id, text="x") == (
        "400 Bad Request: message can't be edited"
    )
    assert await api.refusal("editMessageText", chat_id=chat.id, message_id=9, text="x") == (
        "400 Bad Request: message to edit not found"
    )
    assert await api.refusal("deleteMessage", chat_id=chat.id, message_id=9) == (
        "400 Bad Request: message to delete not found"
    )


async def test_who_cannot_be_written_to(sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat) -> None:
    bob, carol, dora = sim.user("Bob"), sim.user("Carol"), sim.user("Dora")
    left, kicked, deleted = sim.group("L", [bob]), sim.group("K", [bob], supergroup=True), sim.group("D", [bob])
    alice.block_bot(chat)
    sim.private(dora)
    dora.deactivate()
    left.leave(sim.bot)
    kicked.kick(sim.bot)
    deleted.delete()

    async def refusal(number: int) -> str:
        return await api.refusal("sendMessage", chat_id=number, text="x")

    assert await refusal(chat.id) == "403 Forbidden: bot was blocked by the user"
    assert await refusal(carol.id) == "403 Forbidden: bot can't initiate conversation with a user"
    assert await refusal(dora.id) == "403 Forbidden: user is deactivated"
    assert await refusal(left.id) == "403 Forbidden: bot is not a member of the group chat"
    assert await refusal(kicked.id) == "403 Forbidden: bot was kicked from the supergroup chat"
    assert await refusal(deleted.id) == "403 Forbidden: the group chat was deleted"


async def test_a_group_that_became_a_supergroup_says_so(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    group = sim.group("Old", [alice])
    new = group.migrate()

    assert await api("sendMessage", chat_id=group.id, text="x") == {
        "ok": False,
        "error_code": 400,
        "description": "Bad Request: group chat was upgraded to a supergroup chat",
        "parameters": {"migrate_to_chat_id": new.id},
    }
    old, created = [update["message"] for update in await api.result("getUpdates")]
    assert (old["chat"]["id"], old["migrate_to_chat_id"]) == (group.id, new.id)
    assert (created["chat"]["id"], created["migrate_from_chat_id"]) == (new.id, group.id)


async def test_topics(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    forum = sim.group("Forum", [alice], forum=True)
    topic = forum.add_topic("Tea")

    sent = await api.result("sendMessage", chat_id=forum.id, text="in", message_thread_id=topic.id)
    general = await api.result("sendMessage", chat_id=forum.id, text="out")
    forum.close_topic(topic)

    assert (sent["message_thread_id"], sent["is_topic_message"]) == (topic.id, True)
    assert "message_thread_id" not in general
    for thread, refusal in ((1, "message thread not found"), (topic.id, "TOPIC_CLOSED")):
        refused = await api.refusal("sendMessage", chat_id=forum.id, text="x", message_thread_id=thread)
        assert refused == f"400 Bad Request: {refusal}"


async def test_drafts_are_for_private_chats_and_have_a_stop_button(
    sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat
) -> None:
    group = sim.group("G", [alice])
    draft = {"draft_id": 7, "text": "Thinking", "can_stop": True}

    assert await api.result("sendMessageDraft", chat_id=chat.id, **draft) is True
    assert await api.refusal("sendMessageDraft", chat_id=chat.id, text="x") == "400 Bad Request: RANDOM_ID_INVALID"
    assert await api.refusal("sendMessageDraft", chat_id=group.id, **draft) == (
        "400 Bad Request: TEXTDRAFT_PEER_INVALID"
    )
    assert [(one.text, one.draft_id) for one in sim.drafts] == [("Thinking", 7)]
    assert chat.messages == []
    assert alice.press_stop(chat)
    assert not alice.press_stop(chat)
    assert [update["stopped_message_generation"] for update in await api.result("getUpdates")] == [
        {"chat": {"id": alice.id, "type": "private", "first_name": "Alice"}, "draft_id": 7}
    ]


async def test_a_draft_is_shown_for_thirty_seconds_and_until_a_message(
    sim: TelegramSim, api: Api, alice: SimUser, chat: SimChat
) -> None:
    await api.result("sendMessageDraft", chat_id=chat.id, draft_id=1, text="", can_stop=True)
    sim.clock.advance(30)
    assert not alice.press_stop(chat)

    await api.result("sendMessageDraft", chat_id=chat.id, draft_id=2, text="x", can_stop=True)
    await api.result("sendMessage", chat_id=chat.id, text="done")
    assert not alice.press_stop(chat)


async def test_faults(sim: TelegramSim, api: Api, chat: SimChat) -> None:
    sim.fail("busy", retry_after=3)
    sim.fail(502)
    sim.fail("refused")
    sim.fail("request lost")
    sim.fail("receipt lost")
    message = {"chat_id": chat.id, "text": "x"}

    await api.result("sendChatAction", chat_id=chat.id, action="typing")
    busy = await api("sendMessage", **message)
    bad = await api.refusal("sendMessage", **message)
    refused = await api.refusal("sendMessage", **message)
    for posted in (0, 1):
        with pytest.raises(httpx2.RemoteProtocolError):
            await api("sendMessage", **message)
        assert len(chat.messages) == posted
    await api.result("sendMessage", **message)

    assert (busy["description"], busy["parameters"]) == ("Too Many Requests: retry after 3", {"retry_after": 3})
    assert bad == "502 Bad Gateway"
    assert refused == "400 Bad Request: not enough rights to send text messages to the chat"
    assert [call.status for call in sim.calls] == [200, 429, 502, 400, 0, 0, 200]
    assert [(action.chat, action.action) for action in sim.actions] == [(chat.id, "typing")]


async def test_entities_beyond_a_hundred_are_ignored(api: Api, chat: SimChat) -> None:
    bold = [{"type": "bold", "offset": 2 * number, "length": 1} for number in range(150)]

    sent = await api.result("sendMessage", chat_id=chat.id, text="a " * 150, entities=bold)

    assert sent["entities"] == bold[:100]


async def test_what_cannot_be_read_is_refused_before_the_chat_and_wrong_ends_after_it(api: Api, chat: SimChat) -> None:
    wrong = {"text": "a👍", "entities": [{"type": "bold", "offset": 2, "length": 1}]}
    missing = {"text": "a", "entities": [{"type": "bold", "offset": 0}]}

    assert await api.refusal("sendMessage", chat_id=99, **missing) == (
        "400 Bad Request: can't parse MessageEntity: Can't find field \"length\""
    )
    assert await api.refusal("sendMessage", chat_id=99, **wrong) == "400 Bad Request: chat not found"
    assert await api.refusal("sendMessage", chat_id=chat.id, **wrong) == (
        "400 Bad Request: entity begins in a middle of a UTF-16 symbol at byte offset 5"
    )


async def test_a_flood_names_the_time_to_wait_in_a_header_too(sim: TelegramSim, api: Api, chat: SimChat) -> None:
    sim.fail(429, retry_after=9)

    response = await api.client.post(f"/bot{api.token}/sendMessage", json={"chat_id": chat.id, "text": "x"})

    assert (response.status_code, response.headers["retry-after"]) == (429, "9")


async def test_own_posts_in_a_channel_do_not_come_back(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    channel = sim.channel("News", alice)
    post = await api.result("sendMessage", chat_id=channel.id, text="a post")
    await api.result("editMessageText", chat_id=channel.id, message_id=post["message_id"], text="a better post")

    assert sim.bot.pending == 0
    assert channel.texts == ["a better post"]
    assert "from" not in post


async def test_what_members_may_not_send(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    group = sim.group("G", [alice])
    group.restrict(can_send_messages=False)

    assert await api.refusal("sendMessage", chat_id=group.id, text="x") == (
        "400 Bad Request: not enough rights to send text messages to the chat"
    )
    group.promote(sim.bot)
    await api.result("sendMessage", chat_id=group.id, text="x")
