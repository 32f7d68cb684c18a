"""`list_skills`, `load_skill` and `lsp_request`: what an agent can look up."""

from typing import Literal

from stringd.runs.tools.base import Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput
from stringd.runs.tools.todos import NoArguments


class ListSkills(BuiltInTool[NoArguments]):
    name = "list_skills"
    description = "List the skills at hand."
    takes = NoArguments
    repeatable = True
    effect = "inward"

    async def run(self, args: NoArguments, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        found = [
            {
                "name": skill.name,
                "description": skill.description,
                "origin": skill.origin,
                "sourcePath": str(skill.path),
            }
            for skill in context.desk.skills
        ]
        lines = [f"- {each['name']}: {each['description']}" for each in found]
        return ToolOutput(
            "\n".join(lines) or "No skills are at hand.",
            data={"skills": found, "count": len(found)},
        )


class SkillName(Arguments, frozen=True):
    name: str


class LoadSkill(BuiltInTool[SkillName]):
    name = "load_skill"
    description = "Read the full text of a skill."
    takes = SkillName
    repeatable = True
    effect = "inward"

    async def run(self, args: SkillName, context: ToolContext) -> ToolOutput:
        skill = next((each for each in context.desk.skills if each.name == args.name), None)
        if skill is None:
            names = ", ".join(each.name for each in context.desk.skills) or "none"
            raise ToolFailure(
                "not_found", f'No skill "{args.name}". Available skills: {names}', recoverable=True
            )
        return ToolOutput(skill.body, data={"name": skill.name, "sourcePath": str(skill.path)})


class LspArguments(Arguments, frozen=True):
    method: Literal[
        "textDocument/definition",
        "textDocument/references",
        "textDocument/hover",
        "textDocument/documentSymbol",
        "textDocument/implementation",
        "textDocument/typeDefinition",
        "textDocument/diagnostic",
        "workspace/symbol",
    ]
    path: str | None = None
    line: int | None = None
    character: int | None = None
    query: str | None = None
    language_id: str | None = None


class LspRequest(BuiltInTool[LspArguments]):
    name = "lsp_request"
    description = "Ask a language service about code. None is present in this daemon."
    offered = False  # a model that sees it only loses a turn
    takes = LspArguments
    repeatable = True
    effect = "inward"

    async def run(self, args: LspArguments, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        raise ToolFailure(
            "language_unavailable",
            f"No language service answers {args.method}",
            next_step="use search_files instead",
        )
