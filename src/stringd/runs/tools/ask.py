"""`ask_question`: an agent asks the human in the middle of its turn."""

from collections.abc import Mapping
from typing import Any

from stringd.runs.tools.port import ToolContext, ToolOutput


class AskQuestion:
    name = "ask_question"
    description = "Ask the user a question and wait for the answer."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
        "additionalProperties": False,
    }
    guidance: str | None = None

    async def call(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        question = args.get("question")
        if not isinstance(question, str):
            return ToolOutput(
                "Invalid arguments for `ask_question`:\n- `question`: Expected string\n\n"
                "Next step: call it again with the question as text."
            )
        answer = await context.ask(context.agent_name, question)
        return ToolOutput(f'User response: "{answer}"')
