"""`ask_question`: an agent asks the human in the middle of its turn."""

from stringd.runs.errors import UnansweredError
from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput


class AskArguments(Arguments, frozen=True):
    question: str


class AskQuestion(BuiltInTool[AskArguments]):
    name = "ask_question"
    description = "Ask the user a question and wait for the answer."
    takes = AskArguments
    repeatable = True
    effect = "inward"

    async def run(self, args: AskArguments, context: ToolContext) -> ToolOutput:
        try:
            answer = await context.ask(context.agent_name, args.question)
        except UnansweredError as error:
            raise ToolFailure("timeout", str(error), next_step="continue without it") from None
        return ToolOutput(f'User response: "{answer}"')
