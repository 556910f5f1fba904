"""The bot of a config runs in a test with a fake model on a fake platform."""

from pathlib import Path

from engine.engines import said
from tertulia.parts import ToolCall
from tertulia.testing import Clock, RecordedPlatform, Scripted, bot_engine

CONFIG = """
model = "gemini-3.8-flash"
zone = "Europe/Kyiv"
tools = ["reminders", "test_bot_tools:pour"]
[persona]
text = "You are a barman."
[limits]
messages = 2
[memory]
model = "gemini-3.8-flash"
[platforms.mine]
use = "nowhere:Mine"
"""


async def test_persona_tools_limits_and_memory_are_those_of_the_config(tmp_path: Path) -> None:
    (tmp_path / "test_bot_tools.py").write_text("def pour(drink: str) -> str:\n    return f'{drink} is poured'\n")
    (tmp_path / "tertulia.toml").write_text(CONFIG)
    platform, clock = RecordedPlatform(), Clock()
    model = Scripted([ToolCall(name="pour", args={"drink": "tea"})], "Here.", "I will not.", "Again.")

    async with bot_engine(tmp_path / "tertulia.toml", model, platform, clock=clock) as engine:
        for number, text in enumerate(["Tea, please.", "I am allergic to peanuts.", "More!"]):
            await engine.receive(said(text, number))
            await engine.settled()
        await clock.advance(60)
        await engine.receive(said("And now?", 9))
        await engine.settled()

    assert "You are a barman." in model.prompts[0].instruction
    assert model.prompts[1].turns[-1].parts[0].value == "tea is poured"  # type: ignore[union-attr]
    assert platform.texts[0::3] == ["Here.", "Again."]
    assert len(platform.texts) == 4
    assert [("Is allergic to peanuts." in repr(prompt)) for prompt in model.prompts] == [False, False, False, True]
    assert not (tmp_path / "tertulia.db").exists()
