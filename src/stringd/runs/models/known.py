"""The providers known by name: where they are and which form they speak."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Family = Literal["openai", "anthropic"]
CredentialType = Literal["api", "oauth", "custom", "none"]


class Known(NamedTuple):
    """How to talk to a provider. `variable` names the environment variable of its address."""

    base_url: str
    family: Family = "openai"
    credential_type: CredentialType = "api"
    variable: str | None = None


KNOWN: Final[Mapping[str, Known]] = {
    "openai": Known("https://api.openai.com/v1", variable="OPENAI_BASE_URL"),
    "anthropic": Known("https://api.anthropic.com", "anthropic", variable="ANTHROPIC_BASE_URL"),
    "ollama": Known("http://localhost:11434/v1", "openai", "none", "OLLAMA_BASE_URL"),
    "google": Known("https://generativelanguage.googleapis.com/v1beta/openai"),
    "mistral": Known("https://api.mistral.ai/v1"),
    "cohere": Known("https://api.cohere.ai/compatibility/v1"),
    "groq": Known("https://api.groq.com/openai/v1"),
    "perplexity": Known("https://api.perplexity.ai"),
    "fireworks": Known("https://api.fireworks.ai/inference/v1"),
    "deepseek": Known("https://api.deepseek.com/v1"),
    "xai": Known("https://api.x.ai/v1"),
    "openrouter": Known("https://openrouter.ai/api/v1"),
    "together": Known("https://api.together.xyz/v1"),
    "github-copilot": Known("https://api.githubcopilot.com", "openai", "oauth"),
}


class Access(NamedTuple):
    """Everything needed to open a connection to a provider."""

    family: Family
    base_url: str
    key: str
