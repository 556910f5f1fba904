"""What a line typed into the chat means: a command or a message. Pure."""

import re

from msgspec import Struct

HELP = """\
/help               this page
/history            what has been said, shortly: what the model sees
/model [NAME [URL]] which model answers; with a name, another one goes on with the same conversation
/system [TEXT|-]    the instruction the model follows; with a text, another one; with -, none
/clear              forget what has been said
/quit               leave; so do Ctrl-D and Ctrl-C twice
Ctrl-C stops an answer. A line that ends in \\ goes on in the next one; so it does with Alt-Enter.
A message that begins like a command is sent as one with a space before it."""

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
