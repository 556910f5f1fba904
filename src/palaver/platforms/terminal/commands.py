"""What a line typed into the chat means: a command or a message. Pure."""

import re

from msgspec import Struct

HELP = """\
/help               this page
/history            what has been said, shortly; the last 50 messages
/prompt             the layers of the last request: tokens, what was new, what was left out
/model [NAME [URL]] which model answers; with a name, another one goes on with the same conversation
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

WORDS = {
    "help": 0,
    "history": 0,
    "prompt": 0,
    "model": 2,
    "system": None,
    "tasks": 0,
    "memory": 2,
    "forget": None,
    "stop": 0,
    "clear": 0,
    "quit": 0,
    "exit": 0,
}  # after it, at most

_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


class Command(Struct, frozen=True, kw_only=True):
    name: str
    rest: str = ""


def understand(line: str) -> Command | str:
    """The command a line gives, or the message it is: /help is one, /etc/hosts and " /help" are messages."""
    found = _COMMAND.fullmatch(line.rstrip())
    if not found:
        return line.strip()
    return Command(name=found[1], rest=(found[2] or "").strip())


def misused(command: Command) -> str | None:
    """What is wrong with a command: there is none of that name, or it takes less."""
    if command.name not in WORDS:
        return f"there is no /{command.name}; /help shows what there is"
    most = WORDS[command.name]
    if most is None or len(command.rest.split()) <= most:
        return None
    takes = f"at most {most} words" if most else "nothing"
    return f"/{command.name} takes {takes} after it; to send this as a message, put a space before it"
