"""A model that answers to the number of a message, a piece at a time, for bots that are killed in mid-answer."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable

from tertulia.models.base import Finish, Response
from tertulia.parts import Part, Text
from tertulia.turns import Prompt, Turn


class Echo:
    """Answers to “number 7!” with *answer_to(7)*, so many words at a time, with a pause before each piece."""

    name = "echo"

    def __init__(self, answer_to: Callable[[int], str], *, words: int, pause: float) -> None:
        self._answer_to = answer_to
        self._words = words
        self._pause = pause

    async def respond(self, prompt: Prompt) -> Response:
        await asyncio.sleep(self._pause)
        return self._response(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        response = self._response(prompt)
        for piece in re.findall(rf"(?:\S+\s*){{1,{self._words}}}", response.text):
            await asyncio.sleep(self._pause)
            yield Text(text=piece)
        yield response

    def _response(self, prompt: Prompt) -> Response:
        number = int(re.findall(r"number (\d+)!", str(prompt.turns[-1]))[-1])
        turn = Turn(role="model", parts=(Text(text=self._answer_to(number)),), model=self.name)
        return Response(turn=turn, finish=Finish(outcome="complete", reason="STOP"))
