"""What people do, as the bot gets it."""

from typing import Any

import pytest

from sim.telegram.api import Api
from tertulia.sim.telegram import Entity, SimUser, TelegramSim


@pytest.fixture
def alice(sim: TelegramSim) -> SimUser:
    return sim.user("Alice")


async def last(api: Api, kind: str = "message") -> Any:
    """Return the newest update."""
    return (await api.result("getUpdates", offset=-1))[0][kind]


def test_a_bot_has_the_name_that_people_mention() -> None:
    assert TelegramSim(username="gryag_bot").bot.username == "gryag_bot"


async def test_an_edit_that_changes_nothing_is_no_update(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    chat = sim.private(alice)
    message = alice.send(chat, "one")
    alice.edit(chat, message, "one")
    assert len(await api.updates()) == 1

    alice.edit(chat, message, "two")

    edited = await last(api, "edited_message")
    assert (edited["text"], edited["edit_date"], message.edits) == ("two", 1794744000, [{"text": "one"}])


async def test_a_reply_holds_its_message_but_not_what_that_replies_to(
    sim: TelegramSim, api: Api, alice: SimUser
) -> None:
    group = sim.group("G", [alice], supergroup=True)
    first = alice.send(group, "1")
    second = alice.send(group, "2", reply_to=first)
    alice.send(group, "3", reply_to=second)

    message = await last(api)
    assert (message["message_thread_id"], message["reply_to_message"]["text"]) == (first.id, "2")
    assert "is_topic_message" not in message
    assert "reply_to_message" not in message["reply_to_message"]


async def test_a_reply_to_a_deleted_message_is_a_message_without_reply(
    sim: TelegramSim, api: Api, alice: SimUser
) -> None:
    chat = sim.private(alice)
    first = alice.send(chat, "gone")
    alice.delete(chat, first)
    alice.send(chat, "after", reply_to=first)

    assert "reply_to_message" not in await last(api)
    assert chat.texts == ["after"]


async def test_a_message_of_a_topic_is_a_reply_to_the_opening_of_it(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    forum = sim.group("F", [alice], forum=True)
    topic = forum.add_topic("Tea")
    alice.send(forum, "hello", topic=topic.id)

    message = await last(api)
    assert (message["message_thread_id"], message["is_topic_message"]) == (topic.id, True)
    assert message["reply_to_message"]["forum_topic_created"]["name"] == "Tea"


async def test_people_write_with_entities_of_their_own_too(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    alice.send(sim.private(alice), "bold /go", entities=[Entity(type="bold", offset=0, length=4)])

    assert (await last(api))["entities"] == [
        {"type": "bold", "offset": 0, "length": 4},
        {"type": "bot_command", "offset": 5, "length": 3},
    ]


async def test_a_bot_with_privacy_hears_what_is_meant_for_it(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    shy = sim.add_bot("Shy", username="shy_bot", privacy=True)
    group = sim.group("G", [alice, shy])
    theirs = Api(api.client, shy.token)
    sent = await theirs.result("sendMessage", chat_id=group.id, text="I am shy")
    for text in ("to nobody", "/help", "/help@tertulia_bot", "/help@shy_bot", "hey @shy_bot"):
        alice.send(group, text)
    alice.send(group, "a reply", reply_to=sent["message_id"])
    alice.send(group, "another", reply_to=alice.send(group, "unheard"))

    heard = [update["message"]["text"] for update in await theirs.result("getUpdates")]
    assert heard == ["/help", "/help@shy_bot", "hey @shy_bot", "a reply"]
    group.promote(shy)
    alice.send(group, "to nobody again")
    assert (await last(theirs))["text"] == "to nobody again"


async def test_a_bot_hears_another_bot_unless_it_does_not_want_to(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    other = sim.add_bot("Other", username="other_bot")
    group = sim.group("G", [alice, other])
    other.send(group, "beep")
    assert (await last(api))["from"]["is_bot"] is True

    sim.bot.bot_account.hears_bots = False
    other.send(group, "boop")

    assert (await last(api))["text"] == "beep"


async def test_every_kind_of_reaction_update_needs_an_administrator(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    group = sim.group("G", [alice])
    await api.result("getUpdates", allowed_updates=["message_reaction"])
    message = alice.send(group, "x")
    alice.react(group, message, "👍")
    assert sim.bot.pending == 0

    group.promote(sim.bot)
    alice.react(group, message, "👍", "🔥")

    update = await last(api, "message_reaction")
    assert [one["emoji"] for one in update["old_reaction"]] == ["👍"]
    assert [one["emoji"] for one in update["new_reaction"]] == ["👍", "🔥"]


async def test_a_reply_to_a_message_of_another_chat(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    here, there = sim.group("Here", [alice]), sim.group("There", [alice], supergroup=True)
    quoted = alice.send(there, "said there")
    alice.send_from_elsewhere(here, "about that", there, quoted)
    heard = await last(api)
    reply = {"message_id": quoted.id, "chat_id": there.id, "quote": "there"}
    sent = await api.result("sendMessage", chat_id=here.id, text="yes", reply_parameters=reply)

    origin = {"type": "user", "sender_user": alice.account.user(), "date": 1794744000}
    elsewhere = {"origin": origin, "chat": there.chat.chat(), "message_id": quoted.id}
    assert heard["external_reply"] == sent["external_reply"] == elsewhere
    assert sent["quote"] == {"text": "there", "position": 5, "is_manual": True}
    assert "reply_to_message" not in sent


async def test_a_post_comes_into_the_group_of_its_channel(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    channel, group = sim.channel("News", alice), sim.group("Talk", [alice], supergroup=True)
    alice.send_as_chat(group, "a post", channel=channel, is_automatic_forward=True)

    message = await last(api)
    assert (message["from"]["id"], message["sender_chat"]["id"]) == (777000, channel.id)
    assert message["is_automatic_forward"] is True


async def test_a_topic_of_a_private_chat(sim: TelegramSim, api: Api, alice: SimUser) -> None:
    chat = sim.private(alice)
    topic = chat.add_topic("Tea")

    sent = await api.result("sendMessage", chat_id=chat.id, text="in", message_thread_id=topic.id)

    assert (sent["message_thread_id"], sent["is_topic_message"]) == (topic.id, True)
