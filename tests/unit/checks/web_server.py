"""A small web server for tests that answers byte for byte as told, also against all manners."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Heard:
    """One request."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Stand:
    """Gives its answers one after the other, the last one for ever."""

    answers: list[bytes]
    port: int = 0
    scheme: str = "http"
    heard: list[Heard] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.heard.append(await _request(reader))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if answer == SILENCE:
                await reader.read()
            writer.write(answer)
            await writer.drain()
        writer.close()


SILENCE = b"(says nothing)"


def answer(status: int = 200, body: bytes = b"", *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status} Told", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


@contextlib.asynccontextmanager
async def standing(
    answers: Sequence[bytes], context: ssl.SSLContext | None = None
) -> AsyncIterator[Stand]:
    stand = Stand(list(answers), scheme="https" if context else "http")
    server = await asyncio.start_server(stand.serve, "127.0.0.1", 0, ssl=context)
    stand.port = server.sockets[0].getsockname()[1]
    try:
        yield stand
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    lowered = {name.lower(): value for name, value in headers.items()}
    body = await reader.readexactly(int(lowered.get("content-length", "0")))
    return Heard(head[0], lowered, body)
