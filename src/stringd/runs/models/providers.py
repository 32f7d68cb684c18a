"""The one table of providers: where they are, which form they speak, which variables hold keys."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

Family = Literal["openai", "anthropic"]
CredentialType = Literal["api", "oauth", "custom", "none"]


class KnownProvider(NamedTuple):
    """How to talk to a provider.

    `keys` names the environment variables its key may be in, the first one set counts;
    `variable` the one of its address.
    """

    base_url: str
    keys: tuple[str, ...] = ()
    family: Family = "openai"
    credential_type: CredentialType = "api"
    variable: str | None = None
    name: str = ""


OWN: Final[Mapping[str, KnownProvider]] = {
    "openai": KnownProvider(
        "https://api.openai.com/v1", ("OPENAI_API_KEY",), variable="OPENAI_BASE_URL"
    ),
    "anthropic": KnownProvider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "anthropic",
        variable="ANTHROPIC_BASE_URL",
    ),
    "ollama": KnownProvider(
        "http://localhost:11434/v1", credential_type="none", variable="OLLAMA_BASE_URL"
    ),
    "google": KnownProvider(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_API_KEY"),
    ),
    "mistral": KnownProvider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "cohere": KnownProvider("https://api.cohere.ai/compatibility/v1", ("COHERE_API_KEY",)),
    "groq": KnownProvider("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "perplexity": KnownProvider("https://api.perplexity.ai", ("PERPLEXITY_API_KEY",)),
    "fireworks": KnownProvider("https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    "deepseek": KnownProvider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "xai": KnownProvider("https://api.x.ai/v1", ("XAI_API_KEY",)),
    "openrouter": KnownProvider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "together": KnownProvider(
        "https://api.together.xyz/v1", ("TOGETHER_AI_API_KEY", "TOGETHER_API_KEY")
    ),
    "github-copilot": KnownProvider(
        "https://api.githubcopilot.com", ("GITHUB_TOKEN",), credential_type="oauth"
    ),
}

"""Those we know more about than the public catalog says; their ids win."""


def _of_the_catalog() -> dict[str, KnownProvider]:
    """Addresses as the public catalog has them. Variables that also hold keys of other services
    (`DIGITALOCEAN_ACCESS_TOKEN`) are not in it: such a key is given by `stringd keys set`."""
    rows = msgspec.json.decode(
        Path(__file__).with_name("providers.json").read_bytes(), type=dict[str, dict[str, Any]]
    )
    return {
        name: KnownProvider(
            row["api"], tuple(row.get("env", ())), row.get("wire", "openai"), name=row["name"]
        )
        for name, row in rows.items()
    }


KNOWN: Final[Mapping[str, KnownProvider]] = {**_of_the_catalog(), **OWN}
"""Every provider that can be used by its id."""

# Its address is the owner's project, so there is no row above.
_ELSEWHERE: Final = {"google-vertex": ("GOOGLE_VERTEX_API_KEY",)}

KEY_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: provider.keys for name, provider in KNOWN.items() if provider.keys},
    **_ELSEWHERE,
}
"""The environment variables a provider's key may be in."""


def listed_provider(entry: Mapping[str, Any]) -> KnownProvider | None:
    """A provider that only a newer catalog names, where it speaks a form we speak.

    The catalog comes from the network, so it names no variables: an entry that did could have any
    key of the environment sent to its address.
    """
    address, package = entry.get("api"), entry.get("npm")
    if not isinstance(address, str) or not isinstance(package, str):
        return None
    family = _FAMILIES.get(package)
    if family is None or not address.startswith("https://") or "$" in address:
        return None
    address = address.rstrip("/").removesuffix("/chat/completions")
    if family == "anthropic":
        address = address.removesuffix("/v1")
    return KnownProvider(address, family=family, name=str(entry.get("name") or ""))


_FAMILIES: Final[Mapping[str, Family]] = {
    "@ai-sdk/openai-compatible": "openai",
    "@ai-sdk/openai": "openai",
    "@ai-sdk/anthropic": "anthropic",
}
"""The packages by which the catalog says what a provider speaks."""


class Access(NamedTuple):
    """Everything needed to open a connection to a provider."""

    family: Family
    base_url: str
    key: str
