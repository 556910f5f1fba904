"""People of a running simulator are played with JSON over HTTP."""

import base64
from typing import Any

import pytest

from sim.telegram.api import Api
from tertulia.sim.telegram import TelegramSim, image


async def play(api: Api, command: str, **given: Any) -> Any:
    """Return the result of a command, or its error."""
    answer = (await api.client.post(f"/control/{command}", json=given)).json()
    return answer["result"] if answer["ok"] else answer["error"]


async def test_an_evening_is_played_over_http(sim: TelegramSim, api: Api) -> None:
    alice = await play(api, "user", name="Alice", username="alice")
    bob = await play(api, "user", name="Bob", language_code="uk")
    group = await play(api, "group", title="Friends", members=["Alice", "Bob"], forum=True)
    topic = await play(api, "add_topic", chat="Friends", name="Tea")
    said = await play(api, "send", **{"as": "Alice", "chat": "Friends", "text": "Tea?", "topic": topic["id"]})
    (first,) = said["message_ids"]
    await play(api, "send", **{"as": "Bob", "chat": group["id"], "text": "Yes", "reply_to": first, "quote": "Tea"})
    photo = base64.b64encode(image()).decode()
    await play(api, "send_photo", **{"as": "Bob", "chat": "Friends", "data": photo, "caption": "cups"})
    album = await play(api, "send_album", **{"as": "Bob", "chat": "Friends", "photos": 2})
    await play(api, "promote", chat="Friends", user="Tertulia")
    await play(api, "edit", **{"as": "Alice", "chat": "Friends", "message": first, "text": "Tea!"})
    await play(api, "react", **{"as": "Bob", "chat": "Friends", "message": first, "emojis": ["👍"]})
    await play(api, "delete", **{"as": "Bob", "chat": "Friends", "message": album["message_ids"][1]})
    private = await play(api, "send", **{"as": "Alice", "chat": "Alice", "text": "psst"})
    await play(api, "forward", **{"as": "Alice", "from": "Friends", "chat": "Alice", "message": first})
    await play(api, "block_bot", **{"as": "Alice", "chat": "Alice"})
    await play(api, "fail", what=500, method="getMe")
    await play(api, "advance", seconds=60)

    assert (alice["id"], bob["id"], private) == (1001, 1002, {"message_ids": [1]})
    assert [one.get("text", one.get("caption")) for one in await play(api, "messages", chat="Friends")] == [
        *(None, "Tea!", "Yes", "cups", None),
    ]
    kinds = [next(name for name in update if name != "update_id") for update in await api.result("getUpdates")]
    assert kinds == [*["message"] * 6, "my_chat_member", "edited_message", "message", "message", "my_chat_member"]
    assert await api.refusal("getMe") == "500 Internal Server Error"
    calls = await play(api, "calls")
    assert [(call["method"], call["status"]) for call in calls] == [("getUpdates", 200), ("getMe", 500)]
    assert sim.clock() == 1794744060


@pytest.mark.parametrize(
    ("command", "given", "error"),
    [
        ("dance", {}, "dance: no such command; there are "),
        (
            "react",
            {"as": "Tertulia", "message": 1, "emoji": "👍"},
            "react: no 'emoji'; it takes as, chat, ",
        ),
        ("user", {"name": "Bob", "nickname": "B"}, "user: no 'nickname'; it takes name, "),
        ("send", {"as": "Nobody", "text": "x"}, "send: nobody is named 'Nobody'; make a person with /control/user"),
        ("send", {"as": "Tertulia", "chat": "Moon"}, "send: no chat 'Moon': give the title of a group, the name of"),
        ("send", {"as": "Tertulia"}, "send: SimUser.send() missing 2 required positional arguments"),
        ("fail", {"what": "earthquake"}, "fail: no such fault: 'earthquake'; there are "),
        ("user", {}, "user: name"),
    ],
)
async def test_what_is_wrong_is_said(api: Api, command: str, given: dict[str, Any], error: str) -> None:
    assert (await play(api, command, **given)).startswith(error)


async def test_an_update_is_injected_as_it_stands(api: Api) -> None:
    assert await play(api, "inject", hologram={"of": "tomorrow"}) == 100_000_001

    assert await api.result("getUpdates") == [{"update_id": 100_000_001, "hologram": {"of": "tomorrow"}}]
