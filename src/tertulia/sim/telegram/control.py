"""The control API: people of a running simulator are played with JSON over HTTP, from a shell or another process.

`POST /control/<command>` with a JSON object; people are named by name, chats by title, id or the name of a person
for the private chat. Every answer is `{"ok": true, "result": …}` or `{"ok": false, "error": "…"}`.
"""

import base64
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import orjson
from starlette.requests import Request as StarletteRequest
from starlette.types import Receive, Scope, Send

from tertulia.errors import InvalidValue
from tertulia.sim.errors import Wire
from tertulia.sim.server import whole_response
from tertulia.sim.telegram.accounts import Message
from tertulia.sim.telegram.chats import SimChat
from tertulia.sim.telegram.people import SimUser
from tertulia.sim.telegram.refusals import Refused
from tertulia.sim.telegram.rendering import shown

if TYPE_CHECKING:
    from tertulia.sim.telegram.sim import TelegramSim

OF_PEOPLE = frozenset(
    name for name, member in inspect.getmembers(SimUser, inspect.isfunction) if not name.startswith("_")
)
OF_CHATS = frozenset({"add", "kick", "leave", "promote", "demote", "restrict", "migrate"})
_JSON = {"content-type": "application/json"}


class Control:
    """Plays the people of a simulator."""

    def __init__(self, sim: "TelegramSim") -> None:
        self._sim = sim
        self._people: dict[str, SimUser] = {}
        self._commands: dict[str, Callable[[Wire], Any]] = {
            "user": self._add_user,
            "group": self._add_group,
            "add_topic": self._add_topic,
            "messages": self._messages,
            "calls": lambda given: self._sim.calls[-int(given.get("last", 100)) :],
            "drafts": lambda given: self._sim.drafts,
            "actions": lambda given: self._sim.actions,
            "inject": lambda given: self._sim.inject(given),
            "fail": self._fail,
            "advance": lambda given: self._sim.clock.advance(float(given.get("seconds", 1))),
        }

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = StarletteRequest(scope, receive)
        name = request.url.path.removeprefix("/control/").strip("/")
        try:
            given = orjson.loads(await request.body() or b"{}")
            if not isinstance(given, dict):
                raise InvalidValue("send a JSON object")
            answer: Wire = {"ok": True, "result": msgspec.to_builtins(self._do(name, given))}
        except (InvalidValue, Refused, ValueError, TypeError, KeyError, IndexError) as error:
            words = error.args[0] if error.args else type(error).__name__
            answer = {"ok": False, "error": f"{name}: {words}"}
        status = 200 if answer["ok"] else 400
        await whole_response(orjson.dumps(answer), status=status, headers=_JSON).send(send, {})

    def _do(self, name: str, given: Wire) -> Any:
        if name in self._commands:
            return self._commands[name](given)
        if name in OF_CHATS and "chat" in given:
            return self._do_to_chat(name, given)
        if name in OF_PEOPLE:
            return self._do_as_person(name, given)
        known = sorted({*self._commands, *OF_CHATS, *OF_PEOPLE})
        raise InvalidValue(f"no such command; there are {', '.join(known)}")

    def _do_as_person(self, name: str, given: Wire) -> Any:
        """Call a method of a person: `as` names who, the rest are its arguments."""
        person = self._person(given.pop("as", None))
        if "chat" in given:
            given["chat"] = self._chat(given["chat"])
        if "data" in given:
            given["data"] = base64.b64decode(given["data"])
        if "photos" in given and isinstance(given["photos"], list):
            given["photos"] = [base64.b64decode(photo) for photo in given["photos"]]
        method = getattr(person, name)
        _check(method, given, "as")
        emojis = given.pop("emojis", [])
        if name == "forward":
            given["message"] = self._chat(given.pop("from")).message(given["message"])
        result = method(*[given.pop(one) for one in ("chat", "message") if one in given], *emojis, **given)
        found = result if isinstance(result, list) else [result]
        ids = [one.id for one in found if isinstance(one, Message)]
        return {"message_ids": ids} if ids else result

    def _do_to_chat(self, name: str, given: Wire) -> Any:
        chat = self._chat(given.pop("chat"))
        people = [self._person(given.pop("user"))] if "user" in given else []
        result = getattr(chat, name)(*people, **given)
        return {"id": result.id} if isinstance(result, SimChat) else result

    def _add_user(self, given: Wire) -> Wire:
        _check(self._sim.user, given)
        person = self._sim.user(given.pop("name"), **given)
        self._people[person.name] = person
        return {"id": person.id}

    def _add_group(self, given: Wire) -> Wire:
        members = [self._person(name) for name in given.pop("members", [])]
        return {"id": self._sim.group(given.pop("title"), members, **given).id}

    def _add_topic(self, given: Wire) -> Wire:
        return {"id": self._chat(given["chat"]).add_topic(given["name"]).id}

    def _messages(self, given: Wire) -> list[Wire]:
        chat = self._chat(given["chat"])
        return [shown(self._sim.world, chat.chat, one, self._sim.bot.bot_account) for one in chat.messages]

    def _fail(self, given: Wire) -> None:
        self._sim.fail(given.pop("what"), given.pop("times", 1), **given)

    def _person(self, name: Any) -> SimUser:
        if name == self._sim.bot.name:
            return self._sim.bot
        if name not in self._people:
            raise InvalidValue(f"nobody is named {name!r}; make a person with /control/user")
        return self._people[name]

    def _chat(self, which: Any) -> SimChat:
        if isinstance(which, int):
            return self._sim.chat(which)
        if which in self._people:
            return self._sim.private(self._people[which])
        titled = [chat for chat in self._sim.world.chats() if chat.title and chat.title == which]
        if not titled:
            raise InvalidValue(f"no chat {which!r}: give the title of a group, the name of a person, or an id")
        return self._sim.chat(titled[-1].id)


def _check(method: Callable[..., Any], given: Wire, *others: str) -> None:
    """Refuse what *method* does not take, and say what it takes; *others* are arguments of the command alone."""
    parameters = inspect.signature(method).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = [*others, *parameters, *(["from"] if method.__name__ == "forward" else [])]
    for name in given:
        if name not in known:
            raise InvalidValue(f"no {name!r}; it takes {', '.join(known)}")
