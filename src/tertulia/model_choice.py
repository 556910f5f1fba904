"""ModelChoice: the model that a name means, checked before it is asked; and what errors about it tell to do."""

import os
import reprlib
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from tertulia.errors import InvalidValue, KeyMissing, NotInstalled
from tertulia.models import Gemini, Local, OpenAI, model_file, provider_of, unknown_model, vendor_and_url
from tertulia.models.base import Model
from tertulia.models.local.packages import has_runtime
from tertulia.models.local.weights import WEIGHTS, find_weights, missing_bytes, size_text
from tertulia.models.openai.transcription import Transcriber
from tertulia.models.openai.vendors import Vendor


def program_command(script: str | None = None, *, python: str = sys.executable) -> str:
    """Return the command that runs this program: `tertulia` if the shell finds it, else its path, or `python -m
    tertulia`.
    """
    script = sys.argv[0] if script is None else script
    if os.path.basename(script) == "__main__.py":
        return f"{_shortest_path(python)} -m tertulia"
    return _shortest_path(script) if os.path.basename(script) == "tertulia" else "tertulia"


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
    new_key: str = "Start again with a key that works"  # what to do about a key that is refused


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


SMALL = "smollm2"  # 135 million parameters


BETTER = "qwen"


LOOPBACK = ("127.0.0.1", "localhost", "::1")


OLLAMA_PORT = 11434


GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


class ModelChoice(Struct, frozen=True, kw_only=True):
    """A model, and how it was chosen."""

    model: Any  # a Model
    name: str  # as the person wrote it
    base_url: str | None = None  # as given with the name, or in the environment
    why: str = ""  # why it was chosen, if the person did not name it
    has_tools: bool = True  # whether the service takes tools for it

    @property
    def small(self) -> bool:
        return self.name == SMALL

    @property
    def kind(self) -> str:
        return provider_of(self.name)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The variables that may hold the key of its service."""
        vendor = getattr(self.model, "vendor", None)
        return GEMINI_KEYS if self.kind == "gemini" else vendor.key_names if vendor else ()


def choose_model(
    text: str | None,
    base_url: str | None = None,
    *,
    hints: Hints = START_HINTS,
    environment: Mapping[str, str] = os.environ,
    local: Callable[[str], Model] | None = None,
) -> ModelChoice:
    """Return the model that *text* names; without a name the better local model that is installed."""
    local = local or _local
    kind = "local" if text is None else provider_of(text)
    if kind == "local" and base_url:
        raise InvalidValue("an address goes with openai:NAME or gemini-…; the embedded model has none")
    if text is None:
        return _default(local)
    if kind == "local":
        return ModelChoice(model=local(text), name=text)
    if kind == "gemini":
        return _gemini(text, base_url, hints, environment=environment)
    if kind:
        return _openai(text, base_url, hints, environment=environment)
    raise unknown_model(text)


def _default(local: Callable[[str], Model]) -> ModelChoice:
    try:
        return ModelChoice(model=local(BETTER), name=BETTER)
    except NotInstalled:  # if nothing is installed, the small model raises the error
        return ModelChoice(model=local(SMALL), name=SMALL)


def _local(name: str) -> Model:
    """Return a local model; raise NotInstalled if something is missing."""
    if name in WEIGHTS and not (has_runtime() and find_weights(name)):
        fetch = f"{program_command()} model get {name}"
        raise NotInstalled(
            f"{name} has not been fetched; this does it ({size_text(missing_bytes(name))}, once): {fetch}"
        )
    if not has_runtime():
        raise NotInstalled(f"{name} needs xllamacpp to run: pip install 'tertulia[local]'")
    return Local(name) if name in WEIGHTS else _from_file(name)


def _from_file(name: str) -> Model:
    path = model_file(name)
    try:
        there = path.is_file()
    except OSError as error:
        raise InvalidValue(f"cannot read {reprlib.repr(name)}: {error.strerror or error}") from error
    if not there:
        raise InvalidValue(f"there is no file {name}")
    return Local(path.stem, path=path)


def _gemini(name: str, base_url: str | None, hints: Hints, *, environment: Mapping[str, str]) -> ModelChoice:
    if not any(environment.get(key) for key in GEMINI_KEYS):
        how = hints.key.format(names=" or ".join(GEMINI_KEYS))
        raise KeyMissing(f"no key for {name}: {how} (https://aistudio.google.com/apikey gives one), or {hints.instead}")
    address = base_url or environment.get("TERTULIA_GEMINI_BASE_URL") or None
    key = next(environment[key] for key in GEMINI_KEYS if environment.get(key))
    return ModelChoice(model=Gemini(name, key=key, base_url=address), name=name, base_url=address)


def _openai(text: str, base_url: str | None, hints: Hints, *, environment: Mapping[str, str]) -> ModelChoice:
    vendor, given, key = _service(text, base_url, hints, environment=environment)
    model = OpenAI(text.partition(":")[2], key=key, base_url=given or vendor.base_url, vendor=vendor)
    return ModelChoice(model=model, name=text, base_url=given)


def choose_transcriber(
    text: str, *, hints: Hints = START_HINTS, environment: Mapping[str, str] = os.environ
) -> Transcriber:
    """Return the transcriber that *text* names, such as openai:whisper-1."""
    if provider_of(text) in ("", "local", "gemini"):
        raise InvalidValue(f"no transcription service has {text!r}: write openai:whisper-1, or groq:whisper-large-v3")
    vendor, given, key = _service(text, None, hints, environment=environment)
    return Transcriber(text.partition(":")[2], key=key, base_url=given or vendor.base_url, vendor=vendor)


def _service(
    text: str, base_url: str | None, hints: Hints, *, environment: Mapping[str, str]
) -> tuple[Vendor, str | None, str | None]:
    """Return the vendor of a model, the address that is given for it, and its key."""
    vendor, given = vendor_and_url(text, base_url, environment=environment)
    name = text.partition(":")[2]
    if vendor.name == "ollama" and environment.get("OLLAMA_HOST"):
        given = given or f"{ollama_url(environment)}/v1"
    address = given or vendor.base_url
    key = next((environment[key] for key in vendor.key_names if environment.get(key)), None)
    if not address:
        raise InvalidValue(f"where is {name!r} served? Say it with {hints.address}")
    if vendor.key_names and urlsplit(address).hostname not in LOOPBACK and not key:
        how = hints.key.format(names=" or ".join(vendor.key_names))
        raise KeyMissing(f"no key for {name} at {address}: {how}, or say where else it is served: {hints.address}")
    return vendor, given, key


def ollama_url(environment: Mapping[str, str]) -> str:
    """Return the address of Ollama, as its own client reads OLLAMA_HOST."""
    given = environment.get("OLLAMA_HOST", "").strip().strip("\"'")
    scheme, separator, rest = given.partition("://")
    if not separator:
        scheme, rest = "http", given
    default = {"http": 80, "https": 443}.get(scheme, OLLAMA_PORT) if separator else OLLAMA_PORT
    try:
        address = urlsplit(f"{scheme}://{rest}")
        port = address.port or default
    except ValueError as error:
        raise InvalidValue(f"OLLAMA_HOST is no address: {given!r}") from error
    host = address.hostname or "127.0.0.1"
    host = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 (where a server listens, not where it is)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{address.path.rstrip('/')}"
