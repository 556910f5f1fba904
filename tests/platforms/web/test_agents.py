"""Several agents on the page and in rooms: a guest sees who speaks, and can name one."""

import asyncio
from pathlib import Path

from platforms.web.room_bots import a_room_bot
from tertulia.engine.agents.agent import Agent
from tertulia.models import Scripted

AGENTS = (Agent(name="Socrates"), Agent(name="Plato", knows="present"))


async def test_a_guest_sees_which_agents_are_there_and_which_one_answers(tmp_path: Path) -> None:
    async with a_room_bot(tmp_path, Scripted("I do.", name="m"), agents=AGENTS, persona=None) as bot:
        guest = await bot.guest(await bot.open_room(title="Agora"), "Ann")
        before = await guest.read("")
        await guest.post("Plato, do you agree?")
        await asyncio.wait_for(bot.engine.settled(), 10)
        page = await guest.read()

    assert before["agents"] == [{"name": "Socrates", "default": True}, {"name": "Plato", "default": False}]
    assert [one["message"]["author"]["name"] for one in page["messages"]] == ["Ann", "Plato"]
    assert [one["run"]["agent"] for one in page["runs"]] == ["Plato"]


async def test_the_page_names_the_agents_and_whose_each_run_is(tmp_path: Path) -> None:
    async with a_room_bot(tmp_path, Scripted("I do.", name="m"), agents=AGENTS, persona=None) as bot:
        guest = await bot.guest(await bot.open_room(title="Agora"), "Ann")
        await guest.post("Plato, do you agree?")
        await asyncio.wait_for(bot.engine.settled(), 10)
        owner = (await bot.looking("owner")).client
        place = f"/api/places/web.{guest.place.id}"
        home, agents, runs, page, decided = [
            (await owner.get(path)).json()
            for path in ("/api/home", "/api/agents", "/api/runs", place, f"{place}/decisions")
        ]

    assert home["agents"] == [{"name": "Socrates", "default": True}, {"name": "Plato", "default": False}]
    assert [(one["name"], one["models"], one["places"], one["today"]["calls"]) for one in agents] == [
        ("Socrates", ["m"], 1, 0), ("Plato", ["m"], 1, 1),
    ]  # fmt: skip
    assert [one["run"]["agent"] for one in runs] == ["Plato"]
    assert [(one["name"], one["here"]) for one in page["agents"]] == [("Socrates", True), ("Plato", True)]
    assert [one["message"].get("agent") for one in decided["messages"]] == [None, "Plato"]


async def test_a_single_agent_is_the_bot_itself(tmp_path: Path) -> None:
    async with a_room_bot(tmp_path, Scripted("Yes.", name="m")) as bot:
        guest = await bot.guest(await bot.open_room(title="Agora"), "Ann")
        owner = (await bot.looking("owner")).client

        assert (await guest.read(""))["agents"] == []
        assert (await owner.get("/api/home")).json()["agents"] == []
