"""The setup of the chat in the terminal: its options, its place and people, and what suits the model that answers."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from getpass import getuser

from msgspec import Struct
from msgspec.structs import replace

from tertulia.config import Config
from tertulia.engine.agents.agent import Cast
from tertulia.engine.background import Sleep
from tertulia.messages import Author, Place
from tertulia.model_choice import CHAT_HINTS, START_HINTS, Hints, ModelChoice, choose_model, program_command
from tertulia.models import Local
from tertulia.models.base import Model
from tertulia.parts import Media
from tertulia.platforms.terminal.commands import ChatCommand, parse_line
from tertulia.toolbox.toolbox import Function, Tool, Toolbox
from tertulia.tools import SEARCH_URL
from tertulia.turns import Settings

PLACE = Place(platform="terminal", id="terminal", kind="direct")
ME = Author(id="tertulia", name="tertulia")
YOU = "you"
SYSTEM = (
    "You talk with somebody at a terminal. Answer in plain text without markup, briefly unless more is asked for. "
    "Use the tools for arithmetic and for what you cannot know, such as the time."
)
SMALL_SYSTEM = "You are a helpful assistant. Give short, plain answers."


HARD_TOOLS = frozenset({"remember"})  # which Qwen calls for everything that is said, mostly in a wrong way
Choose = Callable[[str | None, str | None], ModelChoice]

CHOOSE_IN_CHAT: Choose = partial(choose_model, hints=CHAT_HINTS)
PLAIN_CONFIG = Config(profile="plain")
LAST_MESSAGES = 4  # two questions and their answers
LEARN_TIMEOUT = 2.0  # seconds for memory to read a line of a pipe; what it has not read, the next start reads


class SessionOptions(Struct, frozen=True, kw_only=True):
    """How a session behaves; the defaults fit a person at a terminal."""

    choose: Choose = CHOOSE_IN_CHAT  # for `/model NAME`
    tools: Sequence[Function | Tool] = ()
    system: str | None = None  # None: the instruction that suits the model
    parse_line: Callable[[str], ChatCommand | str] = parse_line
    interactive: bool = True  # a person reads along; else it is a pipe
    place: Place = PLACE
    attached: Sequence[Media] = ()  # goes with the first message
    bot: str = ""  # the tertulia.toml that the chat uses
    last_messages: int = LAST_MESSAGES  # that are shown when a conversation goes on
    config: Config = PLAIN_CONFIG
    zone: str = "UTC"
    learn_timeout: float = LEARN_TIMEOUT
    sleep: Sleep = asyncio.sleep

    cast: Cast | None = None  # the agents of the bot, where it has several
    agent: str = ""  # of them: who answers from now on; empty: who did before

    stored_keys: Collection[str] = ()  # variables whose values were pasted, and are remembered

    def hints(self, choice: ModelChoice) -> Hints:
        """Return what an error tells to do: nobody types commands into a pipe, and a key that was pasted can be pasted
        again.
        """
        hints = CHAT_HINTS if self.interactive else START_HINTS
        new_key = f"{program_command()} chat --choose takes another key"
        return replace(hints, new_key=new_key) if set(choice.key_names) & set(self.stored_keys) else hints


DEFAULT_OPTIONS = SessionOptions()


def person() -> Author:
    """Return the person at the terminal, by their user name."""
    try:
        name = getuser().strip()
    except (OSError, KeyError, ImportError):
        name = ""
    name = YOU if name in ("", ME.id) else name
    return Author(id=name, name=name)


def place_for(choice: ModelChoice, conversation: str | None) -> Place:
    """Return the place of a conversation. A local model has one of its own: small models copy what others said."""
    name = (choice.model.name if choice.kind == "local" else None) if conversation is None else conversation
    return replace(PLACE, id=name or PLACE.id)


def tool_names(environment: Mapping[str, str], *, weather: bool, memory: bool) -> list[str]:
    """Return the tools of the chat: search and weather, which need the network, only if they are asked for."""
    search = bool(environment.get(SEARCH_URL))
    wanted = {"search": search, "weather": weather, "reminders": True, "memory": memory}
    return ["calculator", "clock", *(name for name, is_wanted in wanted.items() if is_wanted)]


def toolbox_for(choice: ModelChoice, tools: Sequence[Function | Tool]) -> Toolbox:
    """Return the tools of a model: none for the small one, which calls them at random, and where the service refuses
    them; for another local one those that it can use.
    """
    if choice.small or not choice.has_tools or _is_plain(choice):
        return Toolbox()
    hard = HARD_TOOLS if choice.kind == "local" else ()
    return Toolbox(one for one in tools if Toolbox([one]).specs[0].name not in hard)


def memory_model_for(choice: ModelChoice) -> Model | None:
    """Return the model that extracts facts; None for models that would invent too many: patterns extract them."""
    model: Model = choice.model
    return None if choice.kind == "local" or _is_plain(choice) else model


def doing_text(choice: ModelChoice) -> str:
    """Return what takes long before a first answer: while a local model is loaded, nothing else runs in the process."""
    is_loading = isinstance(choice.model, Local) and not choice.model.is_loaded
    return f"(loading {choice.model.name})" if is_loading else ""


def system_for(choice: ModelChoice) -> str:
    return SMALL_SYSTEM if choice.small else SYSTEM


def settings_for(choice: ModelChoice) -> Settings:
    return Settings(thoughts=True) if choice.kind == "gemini" else Settings()


def _is_plain(choice: ModelChoice) -> bool:
    """Return whether the service takes neither tools nor schemas for the model."""
    return choice.name.removeprefix("models/").startswith("gemma-") or "-image" in choice.name
