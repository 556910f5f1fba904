"""Endpoint of texts: Markdown as the elements that the page draws."""

import asyncio
import time
from typing import Annotated

from msgspec import Meta, Struct

from tertulia.platforms.web.allowance import Allowance
from tertulia.platforms.web.endpoints import Asked, Endpoint
from tertulia.platforms.web.roles import IN_ROOM
from tertulia.platforms.web.site import Site
from tertulia.platforms.web.text_tree import Element, text_tree

MOST = 100  # texts at once


class Texts(Struct, frozen=True, kw_only=True):
    texts: Annotated[tuple[str, ...], Meta(max_length=MOST)]


def text_endpoints(site: Site) -> tuple[Endpoint, ...]:
    """Return the endpoint of texts. They are parsed one after another, and beside what the bot does."""
    limits, turn = site.room_limits, asyncio.Lock()
    characters = Allowance(limits.texts, limits.texts_per_second, time.monotonic)

    async def trees(asked: Asked) -> tuple[tuple[str | Element, ...], ...]:
        texts = asked.body.texts
        if asked.access and asked.access.guest:
            characters.take(asked.access.guest.id, sum(map(len, texts)))
        async with turn:
            return await asyncio.to_thread(lambda: tuple(map(text_tree, texts)))

    return (
        Endpoint(
            method="POST",
            path="/api/texts",
            summary="Texts, which are Markdown, as elements; nothing is stored",
            handle=trees,
            roles=IN_ROOM,
            body=Texts,
            answers=tuple[tuple[str | Element, ...], ...],
        ),
    )
