"""Endpoint of texts: Markdown as the elements that the page draws."""

from typing import Annotated

from msgspec import Meta, Struct

from tertulia.platforms.web.endpoints import Asked, Endpoint
from tertulia.platforms.web.roles import IN_ROOM
from tertulia.platforms.web.text_tree import Element, text_tree

MOST = 100  # texts at once


class Texts(Struct, frozen=True, kw_only=True):
    texts: Annotated[tuple[str, ...], Meta(max_length=MOST)]


def text_endpoints() -> tuple[Endpoint, ...]:
    """Return the endpoint of texts."""

    async def trees(asked: Asked) -> tuple[tuple[str | Element, ...], ...]:
        return tuple(map(text_tree, asked.body.texts))

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
