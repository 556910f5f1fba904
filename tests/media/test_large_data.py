"""Media of a chat that are too large for one request are uploaded."""

import time

from media.attaching import FLASH, uploads
from tertulia.chat import Chat
from tertulia.models.gemini.client import Gemini
from tertulia.models.scripted import Scripted
from tertulia.parts import Media
from tertulia.sim.gemini import Echo, GeminiSim
from tertulia.turns import user

BOOK = Media.of(b"%PDF-1.7" + bytes(38_000_000), mime="application/pdf")


async def test_a_large_file_of_a_chat_is_uploaded_once() -> None:
    async with GeminiSim(behaviour=Echo(), clock=time.time) as sim, Gemini(FLASH, key="k", base_url=sim.url) as gemini:
        chat = Chat(gemini)

        first = await chat.send_message([BOOK, "What is it?"])
        second = await chat.send_message("And now?")

    assert [one.text for one in (first, second)] == ["What is it?", "And now?"]
    assert uploads(sim) == ["200"]
    assert chat.history[0] == user(BOOK, "What is it?")


async def test_a_large_file_stays_where_the_model_takes_no_files_and_a_small_one_always() -> None:
    small = Media.of(b"%PDF-1.7", mime="application/pdf")
    chat = Chat(Scripted("Yes.", "No.", name=FLASH))

    await chat.send_message([BOOK, small])

    assert isinstance(chat.model, Scripted)
    assert chat.model.prompts[0].turns == (user(BOOK, small),)
    async with GeminiSim(behaviour=Echo(), clock=time.time) as sim, Gemini(FLASH, key="k", base_url=sim.url) as gemini:
        await Chat(gemini).send_message([small, "Look"])
        assert uploads(sim) == []
