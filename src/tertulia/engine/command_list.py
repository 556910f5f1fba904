"""The commands that there are, who may give them, and what each is for. Pure."""

from collections.abc import Mapping

from tertulia.engine.behavior import Behavior
from tertulia.engine.languages import languages_with
from tertulia.engine.languages.english import ENGLISH
from tertulia.engine.languages.lines import Lines
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
    "stats": "owners",
    "usage": "owners",
}  # of each command; everyone may clear a direct chat


def announced_commands(behavior: Behavior) -> tuple[CommandInfo, ...]:
    """Return all commands, for `Platform.announce`."""
    languages = {"": behavior.lines_in(""), **languages_with(behavior.lines)}
    return tuple(
        CommandInfo(name=name, who=who, descriptions={tag: about(name, lines) for tag, lines in languages.items()})
        for name, who in AUDIENCES.items()
    )


def help_lines(lines: Lines, *, owner: bool = False) -> dict[str, str]:
    """Return the lines of `/help` by the names of the commands; those of owners for an *owner* alone."""
    return {name: f"/{name}: {about(name, lines)}" for name, who in AUDIENCES.items() if owner or who != "owners"}


def about(name: str, lines: Lines) -> str:
    """Return what a command is for."""
    text: str = getattr(lines, f"about_{name}")
    return text


HELP = help_lines(ENGLISH)
