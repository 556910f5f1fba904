"""Rendering: a prompt as the request that a model of some name would get; nobody is asked."""

from collections.abc import AsyncIterator
from typing import Literal

from tertulia.engine.replay.values import Rendered
from tertulia.errors import InvalidValue
from tertulia.models import provider_of, unknown_model, vendor_and_url
from tertulia.models.base import Model, Response, Usage
from tertulia.models.gemini import encode as gemini
from tertulia.models.openai import encode as openai
from tertulia.models.openai.encode import media_itself
from tertulia.models.openai.vendors import Vendor, for_model
from tertulia.models.prices import Prices, cost, price_of
from tertulia.parts import Media, Part
from tertulia.tokens import prompt_tokens
from tertulia.turns import Prompt, Role
from tertulia.wire.part_forms import is_sent_to_gemini
from tertulia.wire.repair import repair_prompt

Wire = Literal["gemini", "openai"]


class RenderedModel:
    """A model that is rendered for; it answers nothing."""

    def __init__(self, name: str, *, wire: Wire, vendor: Vendor | None = None) -> None:
        self.name = name
        self.wire = wire
        self.vendor = vendor  # with OpenAI's format

    def takes(self, media: Media, role: Role) -> bool:
        if self.vendor:
            return role == "user" and media_itself(media, self.vendor) is not None
        return is_sent_to_gemini(media)

    async def respond(self, prompt: Prompt) -> Response:
        raise InvalidValue(f"{self.name} is rendered for, and not asked")

    async def stream(self, prompt: Prompt) -> AsyncIterator[Part | Response]:
        yield await self.respond(prompt)


def as_rendered(model: Model | str) -> RenderedModel:
    """Return a model to render for, as it is or as a config names it."""
    if isinstance(model, str):
        return _named(model)
    vendor = getattr(model, "vendor", None)
    if isinstance(vendor, Vendor):
        return RenderedModel(model.name, wire="openai", vendor=for_model(vendor, model.name))
    return _named(model.name)


def _named(name: str) -> RenderedModel:
    kind = provider_of(name)
    if not kind:
        raise unknown_model(name)
    if kind == "local":
        raise InvalidValue(f"{name} runs in this process, and gets no request; name a model of a service")
    if kind == "gemini":
        return RenderedModel(name, wire="gemini")
    vendor, bare = vendor_and_url(name, environment={})[0], name.partition(":")[2]
    return RenderedModel(bare, wire="openai", vendor=for_model(vendor, bare))


def encode_for(prompt: Prompt, attached: Prompt, model: RenderedModel, *, profile: str, prices: Prices) -> Rendered:
    """Return the request of a prompt, *attached* with its media."""
    legal = repair_prompt(attached, model.name, wire=model.wire)
    body = (
        openai.encode_request(legal, model=model.name, vendor=model.vendor)
        if model.vendor
        else gemini.encode_request(legal, model=model.name)
    )
    tokens, price = prompt_tokens(prompt), price_of(model.name, prices)
    return Rendered(
        wire=model.wire,
        model=model.name,
        profile=profile,
        body=body,
        tokens=tokens,
        money=cost(Usage(input=tokens), price) if price else None,
    )
