"""The commands that a bot announces, for a scope and a language, and answers to its buttons."""

import re
from typing import Any

from tertulia.sim.errors import Wire
from tertulia.sim.telegram.access import find_chat
from tertulia.sim.telegram.accounts import BotAccount
from tertulia.sim.telegram.arguments import Arguments
from tertulia.sim.telegram.refusals import refused
from tertulia.sim.telegram.sending import Activity
from tertulia.sim.telegram.world import World

MOST = 100
LONGEST_COMMAND, LONGEST_DESCRIPTION = 32, 256
_WIDE = ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
_NARROW = ("chat", "chat_administrators", "chat_member")


def set_my_commands(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    given = arguments.json("commands", "commands-json")
    if given is None:
        given = []
    if not isinstance(given, list):
        raise refused("commands-array")
    pairs = [_pair(one) for one in given]
    key = _key(world, bot, arguments)
    commands = [_command(*pair) for pair in pairs]
    if len(commands) > MOST:
        raise refused("commands-many")
    bot.commands[key] = commands
    return True


def get_my_commands(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> list[Wire]:
    return bot.commands.get(_key(world, bot, arguments), [])


def delete_my_commands(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    bot.commands.pop(_key(world, bot, arguments), None)
    return True


def answer_callback_query(world: World, activity: Activity, bot: BotAccount, arguments: Arguments) -> bool:
    query = arguments.text("callback_query_id")
    if activity.queries.pop(query, None) != bot.id:
        raise refused("query")
    activity.answers[query] = arguments.text("text")
    return True


def _pair(given: Any) -> tuple[str, str]:
    if not isinstance(given, dict):
        raise refused("command-object", why="expected an Object")
    for name in ("command", "description"):
        if not isinstance(given.get(name), str):
            raise refused("command-object", why=f'Can\'t find field "{name}"')
    return given["command"], given["description"]


def _command(command: str, description: str) -> Wire:
    command, description = command.strip().removeprefix("/"), description.strip()
    if not command:
        raise refused("command-empty")
    if len(command) > LONGEST_COMMAND:
        raise refused("command-long")
    if not description:
        raise refused("command-text-empty")
    if len(description) > LONGEST_DESCRIPTION:
        raise refused("command-text-long")
    if not re.fullmatch(r"[a-z0-9_]+", command):
        raise refused("command")
    return {"command": command, "description": description}


def _key(world: World, bot: BotAccount, arguments: Arguments) -> tuple[str, str]:
    """Return the scope and the language of a call."""
    scope = _scope(world, bot, arguments)
    language = arguments.text("language_code")
    if not re.fullmatch(r"(?:[a-z]{2})?", language):
        raise refused("language")
    return scope, language


def _scope(world: World, bot: BotAccount, arguments: Arguments) -> str:
    given = arguments.json("scope", "scope-json")
    if not arguments.text("scope"):
        return "default"
    if not isinstance(given, dict):
        raise refused("scope", why="BotCommandScope must be an Object")
    kind = given.get("type")
    if kind in _WIDE:
        return str(kind)
    if kind not in _NARROW:
        raise refused("scope", why="Unsupported type specified")
    chat = find_chat(world, bot, str(given.get("chat_id", "")), need="members")
    if kind != "chat_member":
        return f"{kind} {chat.id}"
    user = given.get("user_id")
    if not isinstance(user, int) or user <= 0:
        raise refused("scope", why="Invalid user_id specified")
    return f"{kind} {chat.id} {user}"
