"""What an engine that is killed talks to: people who write by a script, and a model that does as they ask."""

import random
import re
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from tertulia.messages import Author, Message, Place
from tertulia.parts import Text
from tertulia.sim.behaviours import Answer, Ask, Call
from tertulia.testing.platform_world import Fault
from testing.counting_service import CountingService

Kind = Literal["with keys", "without keys"]

KINDS = "plain book look both plan remind note ring slip block unblock clear aside late".split()
SLIPPED = "Some blocks of your last answer"  # how the engine begins to tell a model of bad blocks
AGAIN, BUSY = 0.2, 0.15  # how likely an update is an old one, and a message is not taken at first
ANSWERS = {
    "plan": "# «wait»\ndelay: 1\n\n# «send»\nlater {name}",
    "note": "# «remember»\n{name} likes tea",
    "ring": "# «ring»\n{name}",
    "slip": "# «sned»\nnobody sees this",
    "block": "# «block»",
    "unblock": "# «unblock»",
    "clear": "# «clear-conversation»",
}
CALLS = {"book": ["book"], "look": ["look"], "both": ["book", "look"], "remind": ["remind_me"]}


class Answering:
    """A model whose answer is a function of the request: the message names what is to be done."""

    def answer(self, ask: Ask) -> Answer:
        if ask.last_text.startswith(SLIPPED):
            return Answer(text="# «think»\nThey are not needed.")
        name, kind = re.findall(r"\[(m\d+) (\w+)\]", ask.last_text)[-1]
        if kind in CALLS and not any("functionResponse" in part for part in ask.request["contents"][-1]["parts"]):
            return Answer(calls=[_call(one, name) for one in CALLS[kind]])
        return Answer(text="\n\n".join([f"re {name}", *_blocks(kind, name)]))


def _call(tool: str, name: str) -> Call:
    reminder = {"when": "in 1 second", "text": f"later {name}"}
    return Call(name=tool, args=reminder if tool == "remind_me" else {"message": name})


def _blocks(kind: str, name: str) -> Iterator[str]:
    if kind in ANSWERS:
        yield ANSWERS[kind].format(name=name)


class Sent(Struct, frozen=True, kw_only=True):
    """A message of the bot that people see."""

    key: str
    text: str


class ScriptedService(CountingService):
    """Posts the next message of a script when the bot asks for one; delivers some again, and is busy at times."""

    def __init__(self, kind: Kind, seed: int) -> None:
        super().__init__(keys=kind == "with keys")
        self.kind = kind
        self.sent: list[Sent] = []
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311 (nothing secret)
        self._allowed = 0.0  # messages that may be posted
        self._ends = False
        self._refused: set[str] = set()

    @property
    def acknowledged(self) -> int:
        """How many messages the bot has stored, as far as it said so."""
        return self._acknowledged

    @property
    def messages(self) -> list[Message]:
        """What was delivered and acknowledged."""
        return [self._message(number) for number in range(self._acknowledged)]

    def begin(self, more: float, *, ends: bool = False) -> None:
        """Let a life begin, in which so many more messages may be posted; with *ends* it is told when no more come."""
        self.counts.clear()
        self._allowed = max(len(self._updates), self._acknowledged + more)
        self._ends = ends

    async def _update(self, had: int | None) -> dict[str, Any]:
        if had == self._acknowledged:
            self._acknowledged += 1
        if self._acknowledged and self._chance.random() < AGAIN:
            return self._updates[self._chance.randrange(max(0, self._acknowledged - 10), self._acknowledged)]
        if self._acknowledged == len(self._updates) < self._allowed:
            message = self._message(len(self._updates))
            text = "".join(part.text for part in message.parts if isinstance(part, Text))
            self.post(message.place.id, message.author, text, place_kind=message.place.kind)
        if self._acknowledged == len(self._updates) and self._ends:
            return {"kind": "end"}
        return await super()._update(None)

    def _write(self, request: dict[str, Any], fault: Fault | None) -> dict[str, Any] | None:
        if request["key"] not in self._refused and self._chance.random() < BUSY:
            self._refused.add(request["key"])
            fault = "busy"
        return super()._write(request, fault)

    def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        before = self.counts["sent"]
        answer = super()._send(request)
        if self.counts["sent"] > before:
            self.sent.append(Sent(key=request["key"], text=request["text"]))
        return answer

    def _message(self, number: int) -> Message:
        """What is written is a function of its number: all kinds in an order of their own, three places at a time."""
        turn, position = divmod(number, len(KINDS))
        kinds = KINDS.copy()
        random.Random(f"{self._seed} {turn}").shuffle(kinds)  # noqa: S311
        kind = kinds[position]
        place = self._place(number, kind)
        author = f"{kind}-{number}" if "block" in kind or kind == "late" else f"of-{place.id}"
        text = Text(text=f"{'Gryag, ' * (kind == 'late')}[m{number} {kind}] if you please\nI like tea m{number}")
        return Message(id=f"m{number}", place=place, author=Author(id=author, name="Ann"), parts=(text,))

    def _place(self, number: int, kind: str) -> Place:
        if kind in ("aside", "late"):  # in a group, and not to us, or only since it was edited
            return Place(platform=self.kind, id=f"g{number // 40}", kind="group")
        alone = kind in ("plan", "remind") and number % 2  # what is planned there, no later message calls off
        name = f"a{number}" if alone else f"d{number // 24 * 3 + number % 3}"
        return Place(platform=self.kind, id=name, kind="direct")
