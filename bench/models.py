"""A model call against the bare HTTP exchange it consists of, with the same server."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2

from bench.table import Row
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.port import ModelRequest, ModelSetup, TextDelta
from tests.runs.models.servers import Reply, anthropic, anthropic_text, model_server, openai_text

TITLE = "Models"
_CALLS = 60
_WORDS = [f"word{number} " for number in range(40)]


def rows() -> Iterator[Row]:
    for name, path, reply in (
        ("openai", "/v1/chat/completions", openai_text(*_WORDS)),
        ("anthropic", "/v1/messages", anthropic(anthropic_text(*_WORDS))),
    ):
        first, ours, bare = asyncio.run(_measure(name, path, reply))
        yield Row(
            f"{name}: call of 40 streamed pieces over the bare exchange, warm, p50",
            f"{ours:.1f} ms",
            f"{bare:.1f} ms",
            ours / bare,
            f"≤ 15 ms more (is {ours - bare:.1f} ms)",
        )
        yield Row(f"{name}: first call of a process", f"{first:.0f} ms", "–", None, "–")


async def _measure(provider_id: str, path: str, reply: Reply) -> tuple[float, float, float]:
    async with model_server(reply) as server:
        base = f"{server.url}/v1" if provider_id == "openai" else server.url
        variable = f"{provider_id.upper()}_BASE_URL"
        environ = {variable: base, f"{provider_id.upper()}_API_KEY": "bench"}
        with TemporaryDirectory() as folder:
            directory = ProviderDirectory(Path(folder), environ=environ)
            model = directory.model(
                f"{provider_id}/bench",
                lambda _, model_id: ModelSetup(model_id, "bench", {}, Path(folder)),
            )
            request = ModelRequest("bench", "Be brief.", [{"role": "user", "content": "hello"}])

            async def call() -> None:
                found = [e async for e in model.stream(request) if isinstance(e, TextDelta)]
                assert len(found) == len(_WORDS)

            first = await _time(call)
            async with httpx2.AsyncClient() as client:

                async def bare() -> None:
                    async with client.stream("POST", server.url + path, json={}) as response:
                        async for _ in response.aiter_bytes():
                            pass

                await bare()
                pairs = [(await _time(call), await _time(bare)) for _ in range(_CALLS)]
            await directory.close()
    ours, floor = zip(*pairs, strict=True)
    return first, statistics.median(ours), statistics.median(floor)


async def _time(work: Callable[[], Awaitable[None]]) -> float:
    begun = time.perf_counter()
    await work()
    return (time.perf_counter() - begun) * 1000
