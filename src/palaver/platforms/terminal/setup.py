"""The setup of the chat in the terminal: its place and people, and what suits the model that answers."""

from collections.abc import Mapping, Sequence
from getpass import getuser

from palaver.messages import Author, Place
from palaver.model_choice import ModelChoice
from palaver.models import Local
from palaver.models.base import Model
from palaver.toolbox.toolbox import Function, Tool, Toolbox
from palaver.tools import SEARCH_URL
from palaver.turns import Settings

PLACE = Place(platform="terminal", id="terminal", kind="direct")
ME = Author(id="palaver", name="palaver")
YOU = "you"
SYSTEM = (
    "You talk with somebody at a terminal. Answer in plain text without markup, briefly unless more is asked for. "
    "Use the tools for arithmetic and for what you cannot know, such as the time."
)
SMALL_SYSTEM = "You are a helpful assistant. Give short, plain answers."


def person() -> Author:
    """Return the person at the terminal, by their user name."""
    try:
        name = getuser().strip()
    except (OSError, KeyError, ImportError):
        name = ""
    name = YOU if name in ("", ME.id) else name
    return Author(id=name, name=name)


def tool_names(environment: Mapping[str, str], *, weather: bool, memory: bool) -> list[str]:
    """Return the tools of the chat: search and weather, which need the network, only if they are asked for."""
    search = bool(environment.get(SEARCH_URL))
    wanted = {"search": search, "weather": weather, "reminders": True, "memory": memory}
    return ["calculator", "clock", *(name for name, is_wanted in wanted.items() if is_wanted)]


def toolbox_for(choice: ModelChoice, tools: Sequence[Function | Tool]) -> Toolbox:
    """Return the tools of a model: none for the small one, which calls them at random, and where the service refuses
    them.
    """
    return Toolbox(() if choice.small or not choice.has_tools or _is_plain(choice) else tools)


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
