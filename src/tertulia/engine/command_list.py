"""The commands that there are, who may give them, and what each is for. Pure."""

from collections.abc import Mapping

from tertulia.engine.behavior import Behavior
from tertulia.engine.languages import languages_with
from tertulia.engine.languages.lines import ENGLISH, Lines
from tertulia.platform import CommandAudience, CommandInfo

AUDIENCES: Mapping[str, CommandAudience] = {
    "help": "everyone",
    "memory": "everyone",
    "forget": "everyone",
    "remind": "everyone",
    "tasks": "everyone",
    "stop": "everyone",
    "clear": "administrators",
    "block": "owners",
    "unblock": "owners",
    "limit": "owners",
    "persona": "owners",
    "agents": "owners",
    "agent": "owners",
    "stats": "owners",
    "usage": "owners",
}  # of each command; everyone may clear a direct chat
OF_SEVERAL = ("agents", "agent")  # administrators may give them where there are several agents


def audience(name: str, *, several: bool) -> CommandAudience:
    """Return who may give a command."""
    return "administrators" if several and name in OF_SEVERAL else AUDIENCES[name]


def announced_commands(behavior: Behavior, *, several: bool = False) -> tuple[CommandInfo, ...]:
    """Return all commands, for `Platform.announce`; *several* says whether there is more than one agent."""
    languages = {"": behavior.lines_in(""), **languages_with(behavior.lines)}
    return tuple(
        CommandInfo(
            name=name,
            who=audience(name, several=several),
            descriptions={tag: about(name, lines) for tag, lines in languages.items()},
        )
        for name in AUDIENCES
    )


def help_lines(lines: Lines, *, owner: bool = False, several: bool = False) -> dict[str, str]:
    """Return the lines of `/help` by the names of the commands; those of owners for an *owner* alone."""
    shown = [name for name in AUDIENCES if owner or audience(name, several=several) != "owners"]
    return {name: f"/{name}: {about(name, lines)}" for name in shown}


def about(name: str, lines: Lines) -> str:
    """Return what a command is for."""
    text: str = getattr(lines, f"about_{name}")
    return text


HELP = help_lines(ENGLISH)
