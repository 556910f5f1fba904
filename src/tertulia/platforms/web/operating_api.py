"""Endpoints for programs that watch: health, metrics, and the document of the API."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from starlette.responses import Response

from tertulia.inspector.metrics import MEDIA_TYPE, metrics
from tertulia.platforms.web.endpoints import TEXT, Asked, Endpoint
from tertulia.platforms.web.guard import HEALTH
from tertulia.platforms.web.openapi import openapi_document
from tertulia.platforms.web.page_address import PageAddress
from tertulia.platforms.web.roles import EVERYBODY
from tertulia.platforms.web.site import Site

WELL = "ok"


def operating_endpoints(site: Site, address: PageAddress, others: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """Return the endpoints for programs; the document describes them and the *others*."""

    async def health(asked: Asked) -> Response:
        await site.store.events.last()  # it reads the store, or raises why it cannot
        return Response(WELL, media_type=TEXT)

    async def document(asked: Asked) -> dict[str, Any]:
        return openapi_document((*others, *own), version=version("tertulia"), path=address.path)

    async def measure(asked: Asked) -> Response:
        return Response(await metrics(site.store, now=site.now(), health=site.health), media_type=MEDIA_TYPE)

    own = (
        Endpoint(path=HEALTH, summary="Whether the store can be read", handle=health, roles=EVERYBODY, media_type=TEXT),
        Endpoint(path="/metrics", summary="Metrics for Prometheus", handle=measure, media_type=TEXT),
        Endpoint(path="/api/openapi.json", summary="This document", handle=document),
    )
    return own
