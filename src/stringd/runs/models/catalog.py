"""What is known about models: a bundled snapshot, or a newer one in the data directory.

Both have the form of the models.dev catalog: provider id, then model id, then facts.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import UNSET

from stringd.runs.models.port import Price
from stringd.runs.models.providers import OWN
from stringd.wire.runs.catalog import ModelInfo

_BUNDLED: Final = Path(__file__).with_name("catalog.json")
_MODALITIES: Final = frozenset(("text", "image", "audio", "video", "pdf"))
_STATUSES: Final = frozenset(("alpha", "beta", "deprecated"))
_CAPABILITIES: Final = {
    "tool_call": "tools",
    "reasoning": "reasoning",
    "attachment": "attachment",
    "structured_output": "structuredOutput",
}
_COSTS: Final = {
    "input": "input",
    "output": "output",
    "reasoning": "reasoning",
    "cache_read": "cacheRead",
    "cache_write": "cacheWrite",
}


class Catalog:
    """Read once, when first asked. `cache` is the newer snapshot, used when it can be read."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._data: Mapping[str, Any] | None = None

    def forget(self) -> None:
        """Read both snapshots again when next asked."""
        self._data = None

    @property
    def provider_ids(self) -> list[str]:
        return sorted(self._providers())

    def name(self, provider_id: str) -> str:
        return str(self._providers().get(provider_id, {}).get("name") or provider_id)

    def models(self, provider_id: str) -> list[ModelInfo]:
        """What a provider offers, sorted by id."""
        models = self._models(provider_id)
        return [_info(name, models[name]) for name in sorted(models)]

    def model(self, provider_id: str, model_id: str) -> ModelInfo | None:
        found = self._models(provider_id).get(model_id)
        return None if found is None else _info(model_id, found)

    def entry(self, provider_id: str) -> Mapping[str, Any]:
        """Everything the catalog says about a provider."""
        return _mapping(self._providers().get(provider_id))

    def providers_of(self, model_id: str) -> list[str]:
        """Providers that list a model, sorted; those of our own table come first."""
        found = [each for each in self.provider_ids if model_id in self._models(each)]
        return sorted(found, key=lambda each: each not in OWN)

    def _providers(self) -> Mapping[str, Any]:
        data = self._data
        if data is None:
            bundled = msgspec.json.decode(_BUNDLED.read_bytes(), type=dict[str, Any])
            self._data = data = {**bundled, **self._newer()}
        return data

    def _models(self, provider_id: str) -> Mapping[str, Any]:
        return _mapping(_mapping(self._providers().get(provider_id)).get("models"))

    def _newer(self) -> Mapping[str, Any]:
        try:
            found = msgspec.json.decode(self._cache.read_bytes())["data"]
        except (OSError, msgspec.DecodeError, KeyError, TypeError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {key: value for key, value in found.items() if isinstance(value, dict)}


def price_of(info: ModelInfo | None) -> Price | None:
    """What a model's tokens cost, when both prices are known."""
    cost = info.cost if info is not None and info.cost is not UNSET else {}
    if "input" not in cost or "output" not in cost:
        return None
    return Price(cost["input"], cost["output"])


def _mapping(value: Any) -> Mapping[str, Any]:
    """The catalog of tomorrow may hold anything anywhere."""
    return value if isinstance(value, dict) else {}


def _info(model_id: str, raw: Any) -> ModelInfo:
    facts = _mapping(raw)
    limit = _mapping(facts.get("limit"))
    info = ModelInfo(id=model_id)
    for key, field in (
        ("name", "name"),
        ("family", "family"),
        ("knowledge", "knowledge_cutoff"),
        ("release_date", "release_date"),
        ("last_updated", "last_updated"),
    ):
        if isinstance(facts.get(key), str):
            setattr(info, field, facts[key])
    for key, field in (
        ("context", "context_window"),
        ("input", "max_input_tokens"),
        ("output", "max_output_tokens"),
    ):
        if isinstance(limit.get(key), int):
            setattr(info, field, limit[key])
    if isinstance(facts.get("status"), str) and facts["status"] in _STATUSES:
        info.status = cast(Literal["alpha", "beta", "deprecated"], facts["status"])
    _details(info, facts)
    return info


def _details(info: ModelInfo, facts: Mapping[str, Any]) -> None:
    modalities = {
        side: [each for each in kinds if isinstance(each, str) and each in _MODALITIES]
        for side, kinds in _mapping(facts.get("modalities")).items()
        if side in ("input", "output") and isinstance(kinds, list)
    }
    if modalities:
        info.modalities = modalities
    known = {
        name: bool(facts[key]) for key, name in _CAPABILITIES.items() if facts.get(key) is not None
    }
    if "input" in modalities:
        known["vision"] = "image" in modalities["input"]
    if known:
        info.capabilities = known
    cost = _mapping(facts.get("cost"))
    prices = {
        name: float(cost[key])
        for key, name in _COSTS.items()
        if isinstance(cost.get(key), int | float)
    }
    if prices:
        info.cost = prices
