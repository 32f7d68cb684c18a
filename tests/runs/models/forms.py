"""The four ways providers speak, each with its own words for the same things."""

from dataclasses import dataclass
from typing import Any

from tests.runs.models import servers
from tests.runs.models.servers import Reply

KEY = "sk-very-secret-1234567890"


@dataclass(frozen=True)
class Form:
    """A provider's name, its model, and how it says text, tools, thoughts and errors."""

    name: str
    model: str
    family: str = "openai"

    def text(self, *texts: str, **more: Any) -> Reply:
        if self.family == "anthropic":
            stop = "end_turn" if more.pop("finish", "stop") else None
            return servers.anthropic(servers.anthropic_text(*texts), stop=stop, **more)
        return servers.openai_text(*texts, **more)

    def tool(self, name: str, args: str) -> Reply:
        if self.family == "anthropic":
            return servers.anthropic(servers.anthropic_tool(name, args), stop="tool_use")
        return servers.openai_tool(name, args)

    def thinking(self, thought: str, text: str) -> Reply:
        if self.family == "anthropic":
            thinking = servers.anthropic_thinking(thought, "sig")
            return servers.anthropic(thinking, servers.anthropic_text(text))
        field = "reasoning" if self.name == "ollama" else "reasoning_content"
        return servers.openai({"role": "assistant", field: thought}, {"content": text})

    def error(self, message: str) -> bytes:
        """An error in the middle of a stream."""
        if self.family == "anthropic":
            error = {"type": "error", "error": {"type": "overloaded_error", "message": message}}
            return servers.event(error, "error")
        return servers.event({"error": {"message": message, "type": "server_error"}})

    def failure(self, status: str, message: str, **headers: Any) -> Reply:
        return servers.failure(status, message, **headers)

    def environment(self, url: str) -> dict[str, str]:
        """What points the provider to a server; the fourth is told by `set_credential`."""
        match self.name:
            case "openai":
                return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY}
            case "anthropic":
                return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
            case "ollama":
                return {"OLLAMA_BASE_URL": f"{url}/v1"}
            case _:
                return {}

    def credential(self, url: str) -> dict[str, Any] | None:
        if self.name != "mine":
            return None
        return {"baseURL": f"{url}/v1", "apiKey": KEY}


FORMS = [
    Form("openai", "openai/gpt-4o"),
    Form("anthropic", "anthropic/claude-test", "anthropic"),
    Form("ollama", "ollama/qwen3:8b"),
    Form("mine", "mine/some-model"),
]
