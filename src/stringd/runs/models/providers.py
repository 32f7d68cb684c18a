"""The providers known by name: where they are and which form they speak."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Family = Literal["openai", "anthropic"]
CredentialType = Literal["api", "oauth", "custom", "none"]


class KnownProvider(NamedTuple):
    """How to talk to a provider. `variable` names the environment variable of its address."""

    base_url: str
    family: Family = "openai"
    credential_type: CredentialType = "api"
    variable: str | None = None


KNOWN: Final[Mapping[str, KnownProvider]] = {
    "openai": KnownProvider("https://api.openai.com/v1", variable="OPENAI_BASE_URL"),
    "anthropic": KnownProvider(
        "https://api.anthropic.com", "anthropic", variable="ANTHROPIC_BASE_URL"
    ),
    "ollama": KnownProvider("http://localhost:11434/v1", "openai", "none", "OLLAMA_BASE_URL"),
    "google": KnownProvider("https://generativelanguage.googleapis.com/v1beta/openai"),
    "mistral": KnownProvider("https://api.mistral.ai/v1"),
    "cohere": KnownProvider("https://api.cohere.ai/compatibility/v1"),
    "groq": KnownProvider("https://api.groq.com/openai/v1"),
    "perplexity": KnownProvider("https://api.perplexity.ai"),
    "fireworks": KnownProvider("https://api.fireworks.ai/inference/v1"),
    "deepseek": KnownProvider("https://api.deepseek.com/v1"),
    "xai": KnownProvider("https://api.x.ai/v1"),
    "openrouter": KnownProvider("https://openrouter.ai/api/v1"),
    "together": KnownProvider("https://api.together.xyz/v1"),
    "github-copilot": KnownProvider("https://api.githubcopilot.com", "openai", "oauth"),
}


class Access(NamedTuple):
    """Everything needed to open a connection to a provider."""

    family: Family
    base_url: str
    key: str
