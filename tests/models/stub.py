"""A server that says what it is told to, byte for byte, and keeps what it heard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


def answer(body: bytes, *, status: str = "200 OK", headers: str = "", framed: bool = True) -> bytes:
    """An HTTP response; one that is not *framed* ends where its connection does."""
    length = f"content-length: {len(body)}\r\n" if framed else ""
    return f"HTTP/1.1 {status}\r\n{length}{headers}connection: close\r\n\r\n".encode() + body


class Stub:
    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.url = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.strip().split("\r\n")[1:])
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(int(fields.get("content-length", 0))))
        writer.write(self._answers.pop(0))
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[Stub]:
    """Give the answers in order, one a connection."""
    stub = Stub(list(answers))
    server = await asyncio.start_server(stub, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    stub.url = f"http://{host}:{port}"
    async with server:
        yield stub
