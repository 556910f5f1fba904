"""The bot of the scripted evening, in a process of its own."""

import asyncio
import json as pyjson
import re
from collections.abc import AsyncIterator

from msgspec import json

from lives import fork_lives
from platforms.telegram.bot_child import PIECE, Life, bot_of
from tertulia import Behavior, Engine, Memory, Store
from tertulia.engine.limits import Limits
from tertulia.models.base import Finish, Response
from tertulia.parts import Part, Text
from tertulia.turns import Prompt, Turn

LONG = "a story: " + "word " * 1200 + "**the end**"


class Cook:
    """A model that says what it was asked, in Markdown; a story takes a while."""

    name = "cook"

    async def respond(self, prompt: Prompt) -> Response:
        return self._response(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        response = self._response(prompt)
        for piece in re.findall(r"(?:\S+\s*){1,20}", response.text):
            await asyncio.sleep(PIECE)
            yield Text(text=piece)
        yield response

    def _response(self, prompt: Prompt) -> Response:
        text = pyjson.dumps([turn.text for turn in prompt.turns], ensure_ascii=False) + prompt.instruction
        asked = re.findall(r"\[(\w+)\]\?", text)[-1]  # every question of the script ends with a mark of its own
        said = LONG if asked == "tale" else f"**{asked}**: `ok` 👩‍🍳"
        turn = Turn(role="model", parts=(Text(text=said),), model=self.name)
        return Response(turn=turn, finish=Finish(outcome="complete", reason="STOP"))


async def live(life: Life) -> None:
    behavior, limits = Behavior(debounce=0.05, max_debounce=1.0), Limits(messages=1000)
    async with Store.open(life.path) as store:
        await Engine(store, Cook(), [bot_of(life)], behavior=behavior, limits=limits, memory=Memory(store)).run()


if __name__ == "__main__":
    fork_lives(lambda line: live(json.decode(line, type=Life)))
