"""A bot is tested without a service: what happens is scripted, what is sent is recorded."""

import asyncio

import pytest

from tertulia import Author, Behavior, Capabilities, Delivery, Engine, Message, Place, Reply, Store, Text
from tertulia.platform import Received
from tertulia.testing import RecordedPlatform, Scripted

HERE = Place(platform="recorded", id="1", kind="direct")
HELLO = Message(id="1", place=HERE, author=Author(id="7", name="Alice"), parts=(Text(text="Hello!"),))


def a_delivery(**changes: str) -> Delivery:
    fields = {"id": "d1", "run_id": None, "kind": "answer", "reply": Reply(place=HERE, text="Hi.")}
    return Delivery(**fields | changes)  # type: ignore[arg-type]


async def test_scripted_updates_are_applied_and_what_is_sent_is_shown(store: Store) -> None:
    platform = RecordedPlatform(updates=[[Received(message=HELLO)]])
    running = asyncio.create_task(Engine(store, Scripted("Hi."), [platform], behavior=Behavior(debounce=0)).run())

    await platform.sent.wait()
    running.cancel()
    await asyncio.wait([running])

    assert [reply.text for reply in platform.shown.values()] == ["Hi."]
    assert [delivery.kind for delivery in platform.deliveries] == ["answer"]


async def test_it_fails_as_it_is_told_before_or_after_a_message_is_shown() -> None:
    platform = RecordedPlatform(TimeoutError())
    platform.fail_before = [ConnectionError()]

    with pytest.raises(ConnectionError):
        await platform.send(a_delivery())
    assert platform.texts == []
    with pytest.raises(TimeoutError):
        await platform.send(a_delivery())
    assert platform.texts == ["Hi."]


async def test_an_edit_replaces_what_is_shown() -> None:
    platform = RecordedPlatform(capabilities=Capabilities(edits=True))
    shown = await platform.send(a_delivery())

    assert await platform.send(a_delivery(id="d2", edits=shown)) == shown
    assert (list(platform.shown), platform.keys) == ([shown], ["d1", "d2"])
