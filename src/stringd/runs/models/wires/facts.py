"""What single models refuse or want, by the beginning of their names.

Servers answer 400 to an option a model does not take, so it is left out instead. A model that is
not listed takes everything.
"""

from typing import Final

# Only these know `max_completion_tokens`, and some of them no longer `max_tokens`.
_OPENAI: Final = ("gpt-", "chatgpt-", "o1", "o3", "o4", "codex-")
# The first one that fits counts: whether a model thinks unless told otherwise.
_THINKS: Final = (
    ("gpt-6-astra", True),
    ("gpt-6.1-", True),
    ("gpt-6-", True),
    ("gpt-5.6", True),
    ("gpt-5.5", True),
    ("gpt-5.4-pro", True),
    ("gpt-5.4", False),
    ("gpt-5.3-chat", True),
    ("gpt-5.3", False),
    ("gpt-5.2-pro", True),
    ("gpt-5.2-chat", True),
    ("gpt-5.2", False),
    ("gpt-5.1-codex", True),
    ("gpt-5.1-chat", True),
    ("gpt-5.1", False),
    ("gpt-5-chat", False),
    ("gpt-5", True),
    ("o1", True),
    ("o3", True),
    ("o4", True),
)
_NO_SYSTEM_ROLE: Final = ("o1-mini", "o1-preview")

_CLAUDE_5: Final = (
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5-5",
)
_CLAUDE_128K: Final = (*_CLAUDE_5, "claude-opus-4-6", "claude-sonnet-4-6")
_CLAUDE_64K: Final = ("claude-haiku-4-5", "claude-opus-4-5", "claude-sonnet-4-5")
_CLAUDE_SCHEMAS: Final = (*_CLAUDE_128K, *_CLAUDE_64K, "claude-opus-4-1")
# These refuse a request whose input and `max_tokens` together exceed the window.
_CLAUDE_EXACT: Final = (
    "claude-3",
    "claude-4-",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2",
    "claude-opus-4@",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
    "claude-sonnet-4@",
)
_UNKNOWN_OUTPUT: Final = 16_384
_LITTLE_OUTPUT: Final = 4096


def is_openai_model(model_id: str) -> bool:
    """Whether it is one of OpenAI's own, which refuse options that others take."""
    return model_id.startswith(_OPENAI)


def takes_sampling(model_id: str) -> bool:
    """Whether `temperature` and its kin may be sent to a model of an OpenAI-compatible server."""
    return not next((thinks for lead, thinks in _THINKS if model_id.startswith(lead)), False)


def system_role(model_id: str) -> str:
    """Whose words the system prompt is sent as."""
    return "user" if model_id.startswith(_NO_SYSTEM_ROLE) else "system"


def claude_takes_sampling(model_id: str) -> bool:
    return not model_id.startswith(_CLAUDE_5)


def claude_takes_schema(model_id: str) -> bool:
    """Whether the form of an answer can be asked for natively."""
    return model_id.startswith(_CLAUDE_SCHEMAS)


def claude_output(model_id: str, thinking_budget: int) -> int:
    """The `max_tokens` of a request that sets none; thinking counts into it."""
    if model_id in ("claude-opus-4", "claude-sonnet-4") or model_id.startswith(_CLAUDE_EXACT):
        most = _LITTLE_OUTPUT
    elif model_id.startswith(_CLAUDE_128K):
        most = 128_000
    elif model_id.startswith(_CLAUDE_64K):
        most = 64_000
    else:
        most = _UNKNOWN_OUTPUT
    return max(most, thinking_budget + _LITTLE_OUTPUT)
