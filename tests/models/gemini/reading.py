"""What a model reads of a request, plainly or over a cache."""

from typing import Any

import orjson

from tertulia.models import Finish
from tertulia.models.gemini.encode import encode_cache, encode_request
from tertulia.sim import gemini as sims
from tertulia.sim.gemini import Answer, Ask, Echo, Raw
from tertulia.sim.gemini.answers import TokenCounter
from tertulia.sim.gemini.catalogue import generation
from tertulia.turns import Prompt
from tertulia.wire.repair import repair_prompt

FLASH = "gemini-3.8-flash"
AUTO = {"functionCallingConfig": {"mode": "AUTO"}}
READ = ("systemInstruction", "tools", "toolConfig", "contents")  # what a model reads of a request
OUTCOMES = [
    (sims.Empty(), Finish(outcome="empty", reason="STOP")),
    (sims.EmptyCandidates(), Finish(outcome="empty", reason="NO_CANDIDATES")),
    (sims.MaxTokens(), Finish(outcome="cut", reason="MAX_TOKENS")),
    (sims.ContentFilter(), Finish(outcome="blocked", reason="SAFETY")),
    (sims.BlockedPrompt(), Finish(outcome="prompt_blocked", reason="PROHIBITED_CONTENT")),
    (sims.BlockedPrompt("JAILBREAK"), Finish(outcome="prompt_blocked", reason="JAILBREAK")),
]


class Reader(Echo):
    """Repeats what it is told, and keeps what it read: requests with what their caches hold."""

    def __init__(self) -> None:
        self.read: list[dict[str, Any]] = []
        self.then: dict[str, sims.Fault] = {}  # what goes wrong after a request of a kind

    def answer(self, ask: Ask) -> Answer | Raw:
        self.read.append(read_of(ask.request))
        return super().answer(ask)


def exactly(prompt: Prompt, *, of: str = FLASH) -> int:
    """The tokens the simulator counts in what would be cached."""
    held = orjson.loads(encode_cache(prompt, model=of, ttl=1))
    return TokenCounter(generation(of), lambda _: None).request(held).total()


def plain(prompt: Prompt, to: str = FLASH) -> dict[str, Any]:
    """What the model reads when the prompt is sent plainly."""
    return read_of(orjson.loads(encode_request(repair_prompt(prompt, to, wire="gemini"), model=to)))


def read_of(request: dict[str, Any]) -> dict[str, Any]:
    """The fields a model reads; to leave the choice of tools to it is to say nothing of it."""
    return {name: request[name] for name in READ if name in request and request[name] != AUTO}
