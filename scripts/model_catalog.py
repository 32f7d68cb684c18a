"""`python scripts/model_catalog.py`: makes the bundled catalog from the model libraries.

Names come from pydantic-ai, limits and prices from genai-prices, abilities from pydantic-ai's
profiles. What they do not know (modalities, output limits) is kept from the catalog as it was.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

_FILE: Final = Path(__file__).parents[1] / "src/stringd/runs/models/catalog.json"
# Our ids, theirs of names, theirs of prices.
_PROVIDERS: Final = (
    ("anthropic", "anthropic", "anthropic"),
    ("cohere", "cohere", "cohere"),
    ("deepseek", "deepseek", "deepseek"),
    ("fireworks", "fireworks", "fireworks"),
    # It says itself what a subscription offers, and must not win a bare name over its maker.
    ("github-copilot", "", ""),
    ("google", "google", "google"),
    ("groq", "groq", "groq"),
    ("mistral", "mistral", "mistral"),
    ("openai", "openai-chat", "openai"),
    ("openrouter", "openrouter", "openrouter"),
    ("perplexity", "perplexity", "perplexity"),
    ("together", "together", "together"),
    ("xai", "xai", "x-ai"),
)
# Their lists of prices group names; the names themselves are known for these.
_NAMED: Final = frozenset(("anthropic", "google", "openai"))
# Models that take part in no conversation.
_NO_CHAT: Final = re.compile(
    r"embed|rerank|moderation|whisper|tts|transcribe|image|audio|realtime|live|voice|veo|imagen"
)


def snapshot(old: Mapping[str, Any]) -> dict[str, Any]:
    """The catalog as the libraries know it, completed by an older one."""
    made: dict[str, Any] = {}
    for ours, named, priced in _PROVIDERS:
        before = old.get(ours, {})
        kept: Mapping[str, Any] = before.get("models") or {}
        names = {*_names(named), *kept} | (set() if ours in _NAMED else set(_priced_names(priced)))
        models = {
            name: _merged(kept.get(name, {}), _facts(ours, priced, name))
            for name in sorted(names)
            if name in kept or not _NO_CHAT.search(name)
        }
        made[ours] = {"name": before.get("name") or ours, "models": models}
    return made


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    limit = {**old.get("limit", {}), **new.get("limit", {})}
    return {**old, **new, "limit": limit} if limit else {**old, **new}


def _names(prefix: str) -> Iterator[str]:
    from pydantic_ai.models import known_model_names

    for each in known_model_names():
        provider, _, name = each.partition(":")
        if provider == prefix:
            yield name


def _priced_names(provider_id: str) -> Iterator[str]:
    found = _prices(provider_id)
    yield from [model.id for model in found.models] if found else ()


def _prices(provider_id: str) -> Any:
    from genai_prices.data import providers

    return next((each for each in providers if each.id == provider_id), None)


def _facts(ours: str, priced: str, name: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    provider = _prices(priced)
    model = provider.find_model(name) if provider else None
    if model is not None:
        if model.context_window:
            facts["limit"] = {"context": model.context_window}
        facts |= _cost(model.get_prices(datetime.now(UTC)))
        if model.deprecated:
            facts["status"] = "deprecated"
    return facts | _abilities(ours, name)


def _cost(prices: Any) -> dict[str, Any]:
    """Plain prices; those that grow with the length of a prompt count from their first step."""
    cost = {
        name: _amount(getattr(prices, field, None))
        for name, field in (
            ("input", "input_mtok"),
            ("output", "output_mtok"),
            ("cache_read", "cache_read_mtok"),
            ("cache_write", "cache_write_mtok"),
        )
    }
    known = {name: amount for name, amount in cost.items() if amount is not None}
    return {"cost": known} if {"input", "output"} <= set(known) else {}


def _amount(price: Any) -> float | None:
    if price is None:
        return None
    return float(getattr(price, "base", price))


def _abilities(ours: str, name: str) -> dict[str, bool]:
    """What a profile of a library we talk through says; tools are offered to every chat model."""
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.providers import infer_provider_class

    try:
        profile: Mapping[str, Any] = infer_provider_class(ours).model_profile(name) or {}
    except (ImportError, ValueError, UserError):
        return {}
    keys = (
        ("structured_output", "supports_json_schema_output"),
        ("reasoning", "supports_thinking"),
    )
    return {ours: bool(profile[theirs]) for ours, theirs in keys if theirs in profile}


def main() -> None:
    old = msgspec.json.decode(_FILE.read_bytes(), type=dict[str, Any])
    lines = []
    for ours, entry in snapshot(old).items():
        models = [f"{_json(name)}: {_json(facts)}" for name, facts in entry["models"].items()]
        head = f'{_json(ours)}: {{"name": {_json(entry["name"])}, "models": {{'
        lines.append("\n".join((head, ",\n".join(models) + "}}")))
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    main()
