"""A cable between a browser and a page, which can be cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Cable:
    """What goes through a port to another one, while it is whole."""

    def __init__(self, goal: int) -> None:
        self.port = 0
        self._goal = goal
        self._is_whole = True
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """End all connections, and take no new one."""
        self._is_whole = False
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self._is_whole = True

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry what one connection says, both ways, until an end closes or the cable is cut."""
        if not self._is_whole:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._goal)
        ends = {writer, back}
        self._open |= ends
        await asyncio.gather(_pump(reader, back), _pump(there, writer))
        self._open -= ends


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def cable_to(port: int) -> AsyncIterator[Cable]:
    """Lay a cable from a free port to *port*."""
    cable = Cable(port)
    server = await asyncio.start_server(cable.carry, "127.0.0.1", 0)
    cable.port = server.sockets[0].getsockname()[1]
    try:
        yield cable
    finally:
        server.close()
        cable.cut()
