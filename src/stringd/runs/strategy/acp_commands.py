"""How the usual coding agents are started, by the name people know them by."""

from typing import Final

ACP_COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "claude": ("npx", "-y", "@agentclientprotocol/claude-agent-acp"),
    "codex": ("npx", "-y", "@agentclientprotocol/codex-acp"),
    "gemini": ("gemini", "--experimental-acp"),
    "opencode": ("opencode", "acp"),
}
_WAYS: Final = {
    "npx": "install Node.js 18 or later, which brings npx",
    "gemini": "npm install -g @google/gemini-cli",
    "opencode": "npm install -g opencode-ai",
}


def missing(program: str) -> str:
    """What to do about a program that is not there."""
    way = _WAYS.get(program, "install it, or name another command")
    return f"{program} is not installed: {way}"
