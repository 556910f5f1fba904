"""A model with scripted answers, for tests without a service."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

from tertulia.errors import InvalidValue, ScriptEnded, TertuliaError
from tertulia.models.base import Finish, Response, Usage
from tertulia.parts import Part, Text, Thought
from tertulia.turns import Prompt, Turn

Line = str | Part | Iterable[Any] | Response | TertuliaError


class Scripted:
    """`Scripted("Hello.", [ToolCall(...)], RateLimited("…"))`: an answer for each request, in order. Errors are raised.

    `prompts` are the prompts that it was asked with.
    """

    def __init__(self, *script: Line, name: str = "scripted") -> None:
        self.name = name
        self.prompts: list[Prompt] = []
        self._script = [_check_line(line) for line in script]

    async def __aenter__(self) -> "Scripted":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Do nothing: there is no connection. It exists because other models have one."""

    async def respond(self, prompt: Prompt) -> Response:
        self.prompts.append(prompt)
        if not self._script:
            raise ScriptEnded(
                f"the script of {self.name!r} has no answer for request {len(self.prompts)}; give it one more line"
            )
        line = self._script.pop(0)
        if isinstance(line, TertuliaError):
            raise line
        return line if isinstance(line, Response) else self._response(line)

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        """Yield the answer word by word, then the Response."""
        response = await self.respond(prompt)
        for part in response.parts:
            for piece in _pieces(part):
                yield piece
        yield response

    def _response(self, line: str | Part | Iterable[Any]) -> Response:
        said = [line] if isinstance(line, str | Part) else list(line)
        parts = tuple(Text(text=part) if isinstance(part, str) else part for part in said)
        outcome = Finish(outcome="complete" if parts else "empty", reason="SCRIPT")
        return Response(turn=Turn(role="model", parts=parts, model=self.name), finish=outcome, usage=Usage())


def _check_line(line: Any) -> Line:
    """Return a line of a script if it can be an answer; a generator is read here, once."""
    if isinstance(line, str | Part | Response | TertuliaError):
        return line
    if isinstance(line, Iterable):
        parts = list(line)
        if all(isinstance(part, str | Part) for part in parts):
            return parts
    raise InvalidValue(
        f"a line of a script is a text, a part, a list of them, a Response or one of our errors, not {line!r}"
    )


def _pieces(part: Part) -> Iterable[Part]:
    if not isinstance(part, Text | Thought) or part.signature:
        return [part]
    kind = type(part)
    return [kind(text=word) for word in part.text.splitlines(keepends=True) for word in _words(word)]


def _words(line: str) -> list[str]:
    words = line.split(" ")
    return [f"{word} " for word in words[:-1]] + ([words[-1]] if words[-1] else [])
