"""What a provider itself says it offers, asked over HTTP with a short patience."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from stringd.net.fetch import Fetcher, FetchRequest
from stringd.runs.models.wires.anthropic import key_header
from stringd.system.clock import timestamp
from stringd.wire.runs.catalog import ModelInfo, ProviderInfo

_SECONDS: Final = 5.0


class Lister:
    """Where a provider lists its models, with which headers, and how to read the answer."""

    def __init__(
        self,
        url: str,
        read: Callable[[Any], list[str]],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self._read = read
        self._headers = dict(headers or {})

    async def names(self) -> list[str]:
        """Model ids. Raises whatever goes wrong."""
        fetcher = Fetcher()
        try:
            request = FetchRequest("GET", self._url, self._headers, timeout=_SECONDS)
            answer = await fetcher.fetch(request)
        finally:
            await fetcher.close()
        if answer.status >= 300:
            raise ValueError(f"HTTP {answer.status} {answer.reason} from {answer.url}")
        try:
            return self._read(msgspec.json.decode(answer.body))
        except (ValueError, LookupError, TypeError, AttributeError):
            raise ValueError("The answer is not a list of models") from None


def ollama(base_url: str) -> Lister:
    root = base_url.rstrip("/").removesuffix("/v1")
    return Lister(f"{root}/api/tags", lambda said: [str(each["name"]) for each in said["models"]])


def openai_compatible(base_url: str, key: str) -> Lister:
    return Lister(
        f"{base_url.rstrip('/')}/models",
        lambda said: [str(each["id"]) for each in said["data"]],
        {"Authorization": f"Bearer {key}"},
    )


def anthropic(base_url: str, key: str) -> Lister:
    return Lister(
        f"{base_url.rstrip('/')}/v1/models?limit=1000",
        lambda said: [str(each["id"]) for each in said["data"]],
        {**key_header(key), "anthropic-version": "2023-06-01"},
    )


def copilot(base_url: str, token: str) -> Lister:
    return Lister(
        f"{base_url.rstrip('/')}/models",
        lambda said: [str(each["id"]) for each in said["data"] if _is_on_offer(each)],
        {"Authorization": f"Bearer {token}"},
    )


def _is_on_offer(model: Any) -> bool:
    off = (model.get("policy") or {}).get("state") == "disabled"
    return bool(model.get("model_picker_enabled")) and not off


async def ask(info: ProviderInfo, lister: Lister, mask: Callable[[str], str]) -> None:
    """Replace what the catalog says by what the provider offers; a failure is told in `error`."""
    try:
        names = await asyncio.wait_for(lister.names(), _SECONDS)
    except Exception as error:  # noqa: BLE001  # whatever is wrong there is told, not raised
        info.error = mask(str(error) or type(error).__name__)
        info.models_source = "catalog" if info.models else "error"
        return
    known = {model.id: model for model in info.models}
    info.models_source = "merged" if known and names else "live"
    info.models = [known.get(name) or ModelInfo(id=name, name=name) for name in sorted(set(names))]
    info.fetched_at = timestamp()
