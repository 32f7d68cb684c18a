"""What names a prompt, for everybody who answers or lists one."""

from stringd.wire.runs.messages import RequestInput, RequestPermission, RequestQuestion


def prompt_id(prompt: RequestInput | RequestQuestion | RequestPermission) -> str:
    """What an answer quotes; an input request has no id of its own but its agent."""
    if isinstance(prompt, RequestInput):
        return input_id(prompt.agent_name)
    return str(prompt.request_id)


def input_id(agent_name: str) -> str:
    """The id of what an agent of this name wants to be told."""
    return f"input:{agent_name}"
