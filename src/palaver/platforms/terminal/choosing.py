"""Which model a name means, and whether it can be asked at all."""

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from palaver.errors import InvalidValue, KeyMissing, NotInstalled
from palaver.models import Gemini, OpenAI
from palaver.models.base import Model
from palaver.models.naming import NAMES, kind_of
from palaver.models.openai.vendors import VENDORS, vendor_of

SMALL = "smollm2"  # 135 million parameters: everything said about it says so
BETTER = "qwen"
LOCAL = (SMALL, BETTER)
GEMINI_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


class Chosen(Struct, frozen=True, kw_only=True):
    """A model, and how it was asked for."""

    model: Any  # a Model
    name: str  # as the person wrote it
    base_url: str | None = None

    @property
    def small(self) -> bool:
        return self.name == SMALL

    @property
    def kind(self) -> str:
        return kind_of(self.name)


def choose_model(
    text: str | None,
    base_url: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    local: Callable[[str], Model] | None = None,
) -> Chosen:
    """The model *text* names; without a name the embedded one, the better of the two where it has been fetched."""
    local = local or _local
    kind = "local" if text is None else kind_of(text)
    if kind == "local" and base_url:
        raise InvalidValue("--base-url goes with --model openai:NAME or gemini-…; the embedded model has no address")
    if text is None:
        return _embedded(local)
    if kind == "local":
        return Chosen(model=local(text), name=text)
    if kind == "gemini":
        return _gemini(text, base_url, environment)
    if kind:
        return _compatible(text, base_url, environment)
    meant = "" if ":" in text else f" (openai:{text}, if it is OpenAI's)"
    raise InvalidValue(f"no model is called {text!r}{meant}; there are {NAMES}")


def _embedded(local: Callable[[str], Model]) -> Chosen:
    try:
        return Chosen(model=local(BETTER), name=BETTER)
    except NotInstalled:  # it has not been fetched; or nothing is here, and the other one says so
        return Chosen(model=local(SMALL), name=SMALL)


def _local(name: str) -> Model:
    """A model in this process, if all it needs is here."""
    if find_spec("xllamacpp") is None:
        raise NotInstalled(
            "the embedded model needs xllamacpp: pip install 'palaver[local]', "
            "or ask a service: --model gemini-3.8-flash"
        )
    from palaver.models.local import Local
    from palaver.models.local.weights import weights_path

    if name in LOCAL:
        weights_path(name)
        return Local(name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise InvalidValue(f"there is no file {name}")
    return Local(path.stem, path=path)


def _gemini(name: str, base_url: str | None, environment: Mapping[str, str]) -> Chosen:
    if not any(environment.get(key) for key in GEMINI_KEYS):
        raise KeyMissing(
            f"no key for {name}: set GEMINI_API_KEY or GOOGLE_API_KEY (https://aistudio.google.com/apikey gives one), "
            "or leave --model out and talk to the embedded model"
        )
    return Chosen(model=Gemini(name, base_url=base_url), name=name, base_url=base_url)


def _compatible(text: str, base_url: str | None, environment: Mapping[str, str]) -> Chosen:
    before, _, name = text.partition(":")
    if not name:
        raise InvalidValue(f"{text} names no model: write {before}:NAME")
    given = base_url or (environment.get("PALAVER_OPENAI_BASE_URL") if before == "openai" else None)
    vendor = vendor_of(name, given or "") if before == "openai" else VENDORS[before]
    address = given or vendor.base_url
    if not address:
        raise InvalidValue(f"where is {name!r} served? Add --base-url http://…/v1")
    if vendor.key_names and not _on_this_machine(address) and not any(environment.get(key) for key in vendor.key_names):
        raise KeyMissing(f"no key for {name} at {address}: set {' or '.join(vendor.key_names)}")
    return Chosen(model=OpenAI(name, base_url=address, vendor=vendor), name=text, base_url=base_url)


def _on_this_machine(address: str) -> bool:
    return urlsplit(address).hostname in {"127.0.0.1", "localhost", "::1"}
