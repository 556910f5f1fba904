"""ModelChoice: the model that a name means, checked before it is asked."""

import os
import reprlib
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from palaver.errors import InvalidValue, KeyMissing, NotInstalled
from palaver.models import Gemini, OpenAI, model_file, provider_of, unknown_model, vendor_and_url
from palaver.models.base import Model
from palaver.models.local.weights import WEIGHTS, find_weights
from palaver.platforms.terminal.commands import START_HINTS, Hints, program_command

SMALL = "smollm2"  # 135 million parameters
BETTER = "qwen"
GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


class ModelChoice(Struct, frozen=True, kw_only=True):
    """A model, and how it was chosen."""

    model: Any  # a Model
    name: str  # as the person wrote it
    base_url: str | None = None  # as given with the name, or in the environment

    @property
    def small(self) -> bool:
        return self.name == SMALL

    @property
    def kind(self) -> str:
        return provider_of(self.name)


def choose_model(
    text: str | None,
    base_url: str | None = None,
    *,
    hints: Hints = START_HINTS,
    environment: Mapping[str, str] = os.environ,
    local: Callable[[str], Model] | None = None,
) -> ModelChoice:
    """Return the model that *text* names; without a name the better local model that is installed."""
    local = local or partial(_local, hints=hints)
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


def _local(name: str, *, hints: Hints) -> Model:
    """Return a local model; raise NotInstalled if something is missing."""
    if find_spec("xllamacpp") is None:
        raise NotInstalled(
            "the embedded model needs xllamacpp: pip install 'palaver[local]', "
            f"or ask a service: {hints.model} gemini-3.8-flash"
        )
    from palaver.models.local import Local

    if name not in WEIGHTS:
        return _from_file(name)
    if find_weights(name) is None:
        size = WEIGHTS[name].size >> 20
        fetch = f"{program_command()} model get {name}"
        raise NotInstalled(f"{name} has not been fetched; this does it ({size} MB, once): {fetch}")
    return Local(name)


def _from_file(name: str) -> Model:
    from palaver.models.local import Local

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
    address = base_url or environment.get("PALAVER_GEMINI_BASE_URL") or None
    return ModelChoice(model=Gemini(name, base_url=address), name=name, base_url=address)


def _openai(text: str, base_url: str | None, hints: Hints, *, environment: Mapping[str, str]) -> ModelChoice:
    vendor, given = vendor_and_url(text, base_url, environment=environment)
    name = text.partition(":")[2]
    address = given or vendor.base_url
    if not address:
        raise InvalidValue(f"where is {name!r} served? Say it with {hints.address}")
    if vendor.key_names and not _is_loopback(address) and not any(environment.get(key) for key in vendor.key_names):
        how = hints.key.format(names=" or ".join(vendor.key_names))
        raise KeyMissing(f"no key for {name} at {address}: {how}, or say where else it is served: {hints.address}")
    return ModelChoice(model=OpenAI(name, base_url=address, vendor=vendor), name=text, base_url=given)


def _is_loopback(address: str) -> bool:
    return urlsplit(address).hostname in {"127.0.0.1", "localhost", "::1"}
