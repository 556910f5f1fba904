"""A past request is rendered for readers, and sent again by the owner alone; only its cost is stored."""

import json
from pathlib import Path

from msgspec.structs import replace

from engine.engines import ALICE
from engine.replay.test_replayer import rows_of
from inspector.evening import KEY, MODEL, an_evening
from platforms.web.pages import SAME_ORIGIN, a_page
from tertulia.app import replays_of
from tertulia.config import read_config
from tertulia.engine.replay.replayer import CAPPED
from tertulia.inspector import runs
from tertulia.models.base import Usage
from tertulia.platforms.web.replay_api import NO_BOT
from tertulia.platforms.web.roles import READS_ONLY
from tertulia.sim import GeminiSim
from tertulia.sim.behaviours import Script
from tertulia.store import Store

CONFIG = f'model = ["{MODEL}", "openai:gpt-5.6"]\n[persona]\nname = "gryag"\n[limits.total]\ntokens = 1_000_000\n'


async def test_a_past_request_is_rendered_sent_and_counted(tmp_path: Path) -> None:
    async with an_evening(tmp_path / "bot.db") as store, GeminiSim(behaviour=Script(["Aye, 3A."])) as sim:
        variables = {"GEMINI_API_KEY": KEY, "OPENAI_API_KEY": "k", "TERTULIA_GEMINI_BASE_URL": sim.url}
        file = read_config(CONFIG, variables)
        replays = replays_of(store, file, variables)
        run, rows = (await runs.runs(store))[1].run.id, await rows_of(store)
        path = f"/api/runs/{run}/steps/1"
        async with a_page(tmp_path, store=store, replays=replays) as served:
            await served.log_in("reader")
            client = served.client
            choices = (await client.get("/api/replay")).json()
            same = (await client.get(f"{path}/rendered")).json()
            other = (await client.get(f"{path}/rendered?profile=plain&model=openai:gpt-5.6")).json()
            missing = [
                (await client.get(f"{path}/rendered?{asked}")).json()["error"]
                for asked in ("profile=nice", "model=qwen")
            ]
            refused = await client.post(f"{path}/replay", json={"model": MODEL}, headers=SAME_ORIGIN)
            await served.log_in()
            sent = (await client.post(f"{path}/replay", json={"model": MODEL}, headers=SAME_ORIGIN)).json()
            unknown = await client.post(f"{path}/replay", json={"model": "gpt-9"}, headers=SAME_ORIGIN)
            spent, after = await store.usage.calls(most=1), await rows_of(store)
            await store.usage.add(replace(spent[0].call, usage=Usage(input=10**9)), place=None)
            capped = await client.post(f"{path}/replay", json={"model": MODEL}, headers=SAME_ORIGIN)
            await store.forget(platform="recorded", author_id=ALICE.id)
            forgotten = [
                (await client.get(f"{path}/rendered?profile=plain")).json(),
                (await client.post(f"{path}/replay", json={"model": MODEL}, headers=SAME_ORIGIN)).json(),
            ]

    assert choices["models"] == [MODEL, "openai:gpt-5.6"]
    assert same["before"] == same["after"] != ""
    assert (other["wire"], other["profile"], other["model"]) == ("openai", "plain", "gpt-5.6")
    assert [one["role"] for one in json.loads(other["after"])["messages"]][-1] == "tool"
    assert KEY not in same["after"]
    assert [why.split(";")[0] for why in missing] == [
        "no profile is called 'nice'",
        "qwen runs in this process, and gets no request",
    ]
    assert (refused.status_code, refused.json()) == (403, {"error": READS_ONLY.why})
    assert sent["check"] == {"ok": True, "what": "rebuilt from the store, as it was sent"}
    assert (sent["before"]["parts"][-1]["text"], sent["after"]["parts"][-1]["text"]) == (
        "Seat 3A is free. Take it.",
        "Aye, 3A.",
    )
    assert sent["call"]["purpose"] == spent[0].call.purpose == "replay"
    assert (unknown.status_code, unknown.json()["error"]) == (
        409,
        f"gpt-9 is no model of the bot; there are: {MODEL}, openai:gpt-5.6",
    )
    assert after == rows
    assert (capped.status_code, capped.json()) == (409, {"error": CAPPED})
    assert forgotten == [{"error": f"the prompts of run {run!r} were removed by a forget"}] * 2


async def test_without_a_config_nothing_is_rendered_or_sent(store: Store, tmp_path: Path) -> None:
    async with a_page(tmp_path, store=store) as served:
        await served.log_in()
        choices = await served.client.get("/api/replay")
        shown = await served.client.get("/api/runs/a/steps/0/rendered?profile=plain")

    assert choices.json()["models"] == []
    assert (shown.status_code, shown.json()) == (404, {"error": NO_BOT})
