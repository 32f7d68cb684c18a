"""The system prompt of an LLM agent: its own text, then skills, then what its tools add."""

import asyncio
from collections.abc import Sequence

from stringd.runs.agents.templates import SMALL_TEMPLATE, Templates
from stringd.runs.strategy.definition import LlmAgent
from stringd.runs.tools.tool import Tool


async def system_prompt(
    agent: LlmAgent, templates: Templates, tools: Sequence[Tool], skills: str | None = None
) -> str | None:
    """The prompt for the next call, or None when there is nothing to say."""
    parts = [await _base(agent, templates), skills]
    parts += [f"## {tool.name}\n\n{tool.guidance}" for tool in tools if tool.guidance]
    return "\n\n".join(part for part in parts if part) or None


async def _base(agent: LlmAgent, templates: Templates) -> str | None:
    template = agent.template
    if template is None:
        return agent.system_prompt
    wanted = (template.text, template.variables, agent.base_dir, template.untrusted)
    if templates.may_block or len(template.text) > SMALL_TEMPLATE:
        return await asyncio.to_thread(templates.render, *wanted)
    return templates.render(*wanted)
