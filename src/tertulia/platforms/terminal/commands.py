"""Commands: what a person types in the chat, and the commands that hints and errors name."""

import re

from msgspec import Struct

HELP_INDENT = 20  # where the second column begins
HELP = """\
/help               this page
/history            what has been said, shortly; the last 50 messages
/prompt             the layers of the last request: tokens, what was new, what was left out
/why [WORDS]        why your last message was or was not answered, or the last one with these words
/model [NAME [URL]] which model answers; with a name, another one goes on with the same conversation
/attach PATH        send a file with your next message; without a path, none
/tools              what the model can do besides talking
/system [TEXT|-]    the instruction the model follows; with a text, another one; with -, none
/remind TIME TEXT   a reminder, as in: /remind tomorrow 9:00 call mum
/tasks              what is planned: reminders, and what is to be said later
/memory [why ID]    what is remembered of you; with an id, the messages that say so
/forget ID|WORDS    remove it for good, and hide the messages it came from; /forget all does so with everything
/stop               stop the answer that is being written
/clear              begin anew: the model no longer sees what has been said, nor finds it
/quit               leave; so do Ctrl-D and Ctrl-C twice
Ctrl-C stops an answer, and clears a line. A line that ends in \\ goes on in the next one; so it does with Alt-Enter.
A message that begins like a command is sent as one with a space before it.
A path to an image in a line is offered as a picture.
(remembered: …) is what came to mind for your message, not for the one before, (learned: …) what is new in /memory."""

AGENT_HELP = """\
/agent NAME         who answers from now on; it does not know what was said to the others here
/agents             who there is"""  # where there are several agents
ONE_AGENT = "there is one agent here; tables [agents.NAME] of a tertulia.toml make several"

MAX_WORDS = {
    "help": 0,
    "history": 0,
    "prompt": 0,
    "why": None,
    "model": 2,
    "attach": None,
    "tools": 0,
    "system": None,
    "remind": None,
    "tasks": 0,
    "memory": 2,
    "forget": None,
    "stop": 0,
    "clear": 0,
    "agent": None,
    "agents": None,
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
