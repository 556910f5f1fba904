"""Commands: what a person types in the chat, and the commands that hints and errors name."""

import os
import re
import shlex
import shutil
import sys

from msgspec import Struct

HELP_INDENT = 20  # where the second column begins
HELP = """\
/help               this page
/history            what has been said, shortly; the last 50 messages
/prompt             the layers of the last request: tokens, what was new, what was left out
/model [NAME [URL]] which model answers; with a name, another one goes on with the same conversation
/tools              what the model can do besides talking
/system [TEXT|-]    the instruction the model follows; with a text, another one; with -, none
/tasks              what is planned: reminders, and what is to be said later
/memory [why ID]    what is remembered of you; with an id, the messages that say so
/forget ID|WORDS    remove it for good, and hide the messages it came from; /forget all does so with everything
/stop               stop the answer that is being written
/clear              begin anew: the model no longer sees what has been said, nor finds it
/quit               leave; so do Ctrl-D and Ctrl-C twice
Ctrl-C stops an answer, and clears a line. A line that ends in \\ goes on in the next one; so it does with Alt-Enter.
A message that begins like a command is sent as one with a space before it.
(remembered: …) is what came to mind and had not for the message before, (learned: …) what is new in /memory."""

MAX_WORDS = {
    "help": 0,
    "history": 0,
    "prompt": 0,
    "model": 2,
    "tools": 0,
    "system": None,
    "tasks": 0,
    "memory": 2,
    "forget": None,
    "stop": 0,
    "clear": 0,
    "quit": 0,
    "exit": 0,
}  # after the command; None: any number

_COMMAND = re.compile(r"/([a-zA-Z]+)(?:\s+(.*))?", re.DOTALL)


class ChatCommand(Struct, frozen=True, kw_only=True):
    name: str
    rest: str = ""


def parse_line(line: str) -> ChatCommand | str:
    """Parse a line as a command or a message: /help is a command, /etc/hosts and " /help" are messages."""
    found = _COMMAND.fullmatch(line.rstrip())
    if not found:
        return line.strip()
    return ChatCommand(name=found[1].lower(), rest=(found[2] or "").strip())


def usage_error(command: ChatCommand) -> str | None:
    """Return what is wrong with a command: its name is unknown, or it has too many words."""
    if command.name not in MAX_WORDS:
        return f"there is no /{command.name}; /help shows what there is"
    most = MAX_WORDS[command.name]
    if most is None or len(command.rest.split()) <= most:
        return None
    takes = f"at most {most} words" if most else "nothing"
    return f"/{command.name} takes {takes} after it; to send this as a message, put a space before it"


def program_command(script: str | None = None, *, python: str = sys.executable) -> str:
    """Return the command that runs this program: `palaver` if the shell finds it, else its path, or `python -m
    palaver`.
    """
    script = sys.argv[0] if script is None else script
    if os.path.basename(script) == "__main__.py":
        return f"{_shortest_path(python)} -m palaver"
    return _shortest_path(script) if os.path.basename(script) == "palaver" else "palaver"


def _shortest_path(path: str) -> str:
    """Return the shortest way to type a command: its name if the shell finds it, else its relative path."""
    name = os.path.basename(path)
    found = shutil.which(name)
    if found and os.path.abspath(found) == os.path.abspath(path):
        return name
    near = os.path.relpath(path)
    return shlex.quote(path if near.startswith("..") else os.path.join(os.path.dirname(near) or ".", name))


class Hints(Struct, frozen=True, kw_only=True):
    """What errors tell the person to do, at the start of the program or in the chat."""

    model: str  # how to choose a model
    address: str  # how to give the URL of a model
    key: str  # how to give a key; {names} are the variables
    instead: str  # how to do without the model
    forget: str  # how to make the conversation shorter


START_HINTS = Hints(
    model="--model",
    address="--base-url http://…/v1",
    key="set {names}",
    instead="leave --model out and talk to the embedded model",
    forget="Begin with less, or anew with --db :memory:.",
)
CHAT_HINTS = Hints(
    model="/model",
    address="/model NAME http://…/v1",
    key="start again with {names} set",
    instead="stay with the model that answers now",
    forget="/clear begins anew.",
)
