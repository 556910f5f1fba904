"""Endpoints of replay: past requests in another profile or for another model, and sent to a model of the bot."""

import logging
from contextlib import AsyncExitStack

from msgspec import Struct

from tertulia.errors import InvalidValue, StoreTrouble, TertuliaError, reason_of
from tertulia.inspector.replays import RenderedShown, SentAgainShown, rendered, sent_again
from tertulia.platforms.web.endpoints import Asked, Endpoint, Id, Number, write
from tertulia.platforms.web.site import Replays, Site
from tertulia.profiles import PROFILES

log = logging.getLogger(__name__)

NO_BOT = "this page knows no config of a bot, and can neither render nor send a request"


class OfStep(Struct, frozen=True, kw_only=True):
    run: Id
    step: Number


class InAnother(OfStep, frozen=True, kw_only=True):
    profile: Id | None = None
    model: Id | None = None


class Sending(Struct, frozen=True, kw_only=True):
    """What a past request is sent to, and in which profile."""

    model: Id
    profile: Id | None = None


class Choices(Struct, frozen=True, kw_only=True):
    """In which profiles past requests are rendered, and to which models they are sent."""

    profiles: tuple[str, ...]
    models: tuple[str, ...]


def replay_endpoints(site: Site) -> tuple[Endpoint, ...]:
    """Return the endpoints of replay."""

    def bot() -> Replays:
        if site.replaying is None:
            raise InvalidValue(NO_BOT)
        return site.replaying

    async def choices(asked: Asked) -> Choices:
        return Choices(profiles=tuple(PROFILES), models=site.replaying.models if site.replaying else ())

    async def render(asked: Asked) -> RenderedShown:
        given: InAnother = asked.arguments
        async with AsyncExitStack() as opened:
            model = await bot().open_model(given.model, opened) if given.model in bot().models else given.model
            replayer = await bot().open()
            return await rendered(site.store, replayer, given.run, given.step, model=model, profile=given.profile)

    async def send(asked: Asked) -> SentAgainShown:
        given, body = asked.arguments, asked.body
        assert asked.access is not None  # noqa: S101 (its roles)
        if body.model not in bot().models:
            there = ", ".join(bot().models) or "none"
            raise InvalidValue(f"{body.model} is no model of the bot; there are: {there}")
        about = {"run_id": given.run}
        log.info("step %d is sent to %s for %s", given.step, body.model, asked.access.who, extra=about)
        async with AsyncExitStack() as opened:
            try:
                model, replayer = await bot().open_model(body.model, opened), await bot().open()
                return await sent_again(site.store, replayer, given.run, given.step, model=model, profile=body.profile)
            except StoreTrouble:
                raise
            except TertuliaError as error:  # of the service, of a key, or a cap
                raise InvalidValue(reason_of(error)) from error

    step = "/api/runs/{run}/steps/{step}"
    return (
        Endpoint(path="/api/replay", summary="Profiles and models for past requests", handle=choices, answers=Choices),
        Endpoint(
            path=f"{step}/rendered",
            summary="A past request in another profile or for another model, beside itself",
            handle=render,
            arguments=InAnother,
            answers=RenderedShown,
        ),
        write(
            "POST",
            f"{step}/replay",
            "Send a past request to a model of the bot; only its cost is stored",
            handle=send,
            arguments=OfStep,
            body=Sending,
            answers=SentAgainShown,
        ),
    )
