"""FoundModel: the model of a chat that names none, from the choice made before, a key, Ollama, or what was fetched."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import msgspec
from msgspec import Struct

from tertulia.errors import InvalidValue, TertuliaError
from tertulia.files import replace_atomically
from tertulia.jsonio import loads
from tertulia.model_choice import BETTER, GEMINI_KEYS, SMALL, ollama_url
from tertulia.models import provider_of
from tertulia.models.local import find_weights, has_runtime
from tertulia.models.local.weights import WEIGHTS

OLLAMA_TIMEOUT = httpx2.Timeout(2.0, connect=0.3)  # it runs on this machine, or does not
OLLAMA_SECONDS = 4.0  # for all its answers
MAX_OLLAMA_BYTES = 8_000_000  # of an answer
EMBEDDING_FAMILIES = ("bert", "nomic-bert", "nomic-bert-moe", "xlm-roberta")  # of models that cannot talk

# In this order: the first key that is set decides.
KEY_MODELS: tuple[tuple[tuple[str, ...], str], ...] = (
    (GEMINI_KEYS, "gemini-3.8-flash"),
    (("OPENAI_API_KEY",), "openai:gpt-5.6"),
    (("OPENROUTER_API_KEY",), "openrouter:openrouter/auto"),
    (("MISTRAL_API_KEY",), "mistral:mistral-medium-latest"),
    (("DEEPSEEK_API_KEY",), "deepseek:deepseek-chat"),
    (("GROQ_API_KEY",), "groq:llama-3.3-70b-versatile"),
)


class RememberedChoice(Struct, frozen=True, kw_only=True):
    """What a person chose for their chats; keys by the names of their variables."""

    model: str = ""
    keys: dict[str, str] = {}


class FoundModel(Struct, frozen=True, kw_only=True):
    name: str
    base_url: str | None = None
    why: str = ""  # for the greeting
    has_tools: bool = True


def choice_path() -> Path:
    """Return the file of the choice, in the config folder of the user."""
    from platformdirs import user_config_path

    return user_config_path("tertulia") / "chat.json"


def load_choice(path: Path | None = None) -> RememberedChoice:
    path = path or choice_path()
    try:
        return msgspec.json.decode(path.read_bytes(), type=RememberedChoice)
    except (FileNotFoundError, NotADirectoryError):
        return RememberedChoice()
    except OSError as error:
        raise InvalidValue(f"cannot read {path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise InvalidValue(f"{path} is damaged: delete it, and choose again") from error


def save_choice(choice: RememberedChoice, path: Path | None = None) -> Path:
    """Write the choice; only the user may read it, since it may hold keys."""
    path = path or choice_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_atomically(path, msgspec.json.format(msgspec.json.encode(choice)))
    except OSError as error:
        raise InvalidValue(f"cannot write {path}: {error.strerror or error}") from error
    return path


def find_model(environment: Mapping[str, str], choice: RememberedChoice, *, program: str) -> FoundModel | None:
    """Return the model that answers when none is named; None if there is nothing but the small one, and that has not
    been chosen.

    A choice that was remembered comes first. The small model comes last, also if it was chosen: it is there until
    something better is.
    """
    again = f"you chose it; {program} chat --choose asks again"
    if choice.model and choice.model != SMALL and _is_there(choice.model):
        return FoundModel(name=choice.model, why=again)
    for keys, name in KEY_MODELS:
        has_other_address = name.startswith("openai:") and environment.get("TERTULIA_OPENAI_BASE_URL")
        if (key := next((key for key in keys if environment.get(key)), None)) and not has_other_address:
            return FoundModel(name=name, why=f"{key} is set")
    if found := find_ollama_model(environment):
        return found
    if _is_there(BETTER):
        return FoundModel(name=BETTER)
    return FoundModel(name=SMALL, why=again) if choice.model == SMALL and _is_there(SMALL) else None


def _is_there(name: str) -> bool:
    """Return whether a model can answer: one of this machine has been fetched."""
    return name not in WEIGHTS or (has_runtime() and find_weights(name) is not None)


def find_ollama_model(environment: Mapping[str, str]) -> FoundModel | None:
    """Return the model that an Ollama serves and that was fetched last; None if none answers, or none can talk."""
    until = monotonic() + OLLAMA_SECONDS
    try:
        url = ollama_url(environment)
        with httpx2.Client(base_url=url, timeout=OLLAMA_TIMEOUT, trust_env=False) as client:
            listed = _ask(client, "GET", "/api/tags", until=until).get("models")
            names = _talking_models(listed if isinstance(listed, list) else [])
            talking = _that_talk(client, names, until=until)
            if (first := next(talking, None)) is not None:
                name, can = first
                other, _ = next(talking, ("", []))
                return _ollama_model(name, url, other, has_tools=not can or "tools" in can)
    except (httpx2.HTTPError, httpx2.InvalidURL, TertuliaError, ValueError, OSError):
        return None
    return None


def takes_tools(url: str, name: str) -> bool:
    """Return whether a model of the Ollama at an address takes tools; True where that is not known.

    Raise `InvalidValue` where that Ollama does not have the model.
    """
    until = monotonic() + OLLAMA_SECONDS
    try:
        with httpx2.Client(base_url=url, timeout=OLLAMA_TIMEOUT, trust_env=False) as client:
            shown = _ask(client, "POST", "/api/show", until=until, json={"model": name})
            listed = None if shown else _ask(client, "GET", "/api/tags", until=until).get("models")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError):
        return True
    if isinstance(listed, list):
        has = ", ".join(_talking_models(listed)) or "none that talks"
        raise InvalidValue(f"the Ollama at {url} does not have {name}; it has {has}. `ollama pull {name}` fetches it")
    can = shown.get("capabilities")
    return not can or not isinstance(can, list) or "tools" in can


def _that_talk(client: httpx2.Client, names: list[str], *, until: float) -> Iterator[tuple[str, list[Any]]]:
    """Yield the models that can talk, and what else they can do."""
    for name in names:
        can = _capabilities(client, name, until=until)
        if not can or "completion" in can:
            yield name, can


def _capabilities(client: httpx2.Client, name: str, *, until: float) -> list[Any]:
    """Return what a model can do, in Ollama's words; nothing where an old Ollama does not say."""
    shown = _ask(client, "POST", "/api/show", until=until, json={"model": name}).get("capabilities")
    return shown if isinstance(shown, list) else []


def _talking_models(listed: list[Any]) -> list[str]:
    """Return the names of the models of a list: the one that was fetched last first, those of a cloud last."""
    models = [one for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str) and one["name"]]
    talking = [one for one in models if _family(one) not in EMBEDDING_FAMILIES]
    return [one["name"] for one in sorted(talking, key=lambda one: bool(one.get("remote_host")))]


def _family(model: dict[str, Any]) -> str:
    details = model.get("details")
    return str(details.get("family")) if isinstance(details, dict) else ""


def _ollama_model(name: str, url: str, other: str, *, has_tools: bool) -> FoundModel:
    hint = f"; /model ollama:{other} asks another of its models" if other else ""
    return FoundModel(name=f"ollama:{name}", base_url=f"{url}/v1", why=f"Ollama serves it{hint}", has_tools=has_tools)


def _ask(client: httpx2.Client, method: str, path: str, *, until: float, json: object = None) -> dict[str, Any]:
    """Return the object that a request brings; one that is late or too large raises `TimeoutError` or `ValueError`."""
    with client.stream(method, path, json=json) as response:
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if monotonic() > until:
                raise TimeoutError
            if len(body) > MAX_OLLAMA_BYTES:
                raise ValueError(path)
    found = loads(bytes(body)) if response.status_code == 200 else {}
    return found if isinstance(found, dict) else {}


KEY_PREFIXES = {
    "AIza": "GEMINI_API_KEY",
    "AQ.": "GEMINI_API_KEY",
    "gsk_": "GROQ_API_KEY",
    "sk-or-": "OPENROUTER_API_KEY",
    "sk-proj-": "OPENAI_API_KEY",
    "sk-svcacct-": "OPENAI_API_KEY",
}


def key_name_of(key: str) -> str | None:
    """Return the variable that a key belongs in, by how the key begins; None if several services have such keys."""
    return next((name for prefix, name in KEY_PREFIXES.items() if key.startswith(prefix)), None)


def model_for_key(key_name: str) -> str:
    return next(model for keys, model in KEY_MODELS if key_name in keys)


def provider_names() -> list[str]:
    """Return the services whose keys can be given, in the order of `KEY_MODELS`."""
    return [provider_of(model) for _, model in KEY_MODELS]
