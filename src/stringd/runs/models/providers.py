"""The one table of providers: where they are, which form they speak, which variables hold keys."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

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


KNOWN: Final[Mapping[str, KnownProvider]] = {
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

# Its address is the owner's project, so there is no row above.
_ELSEWHERE: Final = {"google-vertex": ("GOOGLE_VERTEX_API_KEY",)}

KEY_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: provider.keys for name, provider in KNOWN.items() if provider.keys},
    **_ELSEWHERE,
}
"""The environment variables a provider's key may be in."""


class Access(NamedTuple):
    """Everything needed to open a connection to a provider."""

    family: Family
    base_url: str
    key: str
