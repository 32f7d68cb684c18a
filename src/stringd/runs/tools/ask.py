"""`ask_question`: an agent asks the human in the middle of its turn."""

from stringd.runs.errors import UnansweredError
from stringd.runs.tools.checked import Arguments, CheckedTool
from stringd.runs.tools.outcome import ToolFailure, ToolOutput
from stringd.runs.tools.port import ToolContext


class Question(Arguments, frozen=True):
    question: str


class AskQuestion(CheckedTool[Question]):
    name = "ask_question"
    description = "Ask the user a question and wait for the answer."
    takes = Question
    repeatable = True

    async def run(self, args: Question, context: ToolContext) -> ToolOutput:
        try:
            answer = await context.ask(context.agent_name, args.question)
        except UnansweredError as error:
            raise ToolFailure("timeout", str(error), next_step="go on without it") from None
        return ToolOutput(f'User response: "{answer}"')
