"""What others may import stays there: every public name is listed here."""

import subprocess
import sys
from importlib import import_module

import pytest

PUBLIC = {
    "stringd": (
        "Agent AsyncGate AsyncRuns AsyncString Broadcast Cycle Gate Person Runs Sequential "
        "String __version__ follow read_strategy run run_async tool"
    ),
    "stringd.library": (
        "Agent Answer Broadcast Cycle FunctionTool Person Prompt RunOptions RunResult Sequential "
        "follow read_strategy run run_async tool"
    ),
    "stringd.testing": "CallTool Reply ScriptedModel with_models",
    "stringd.client": (
        "AsyncGate AsyncRuns AsyncString CommandFailed ExecResult FollowedRun Gate GateClientError "
        "Health OpenDocument QueueFull QueueTimeout RegisteredUser RequestFailedError "
        "RequestRefusedError RunFailedError RunHandle Runs RunsError StrangerError "
        "StreamIncomplete String StringClientError TopicState TransportError UnreachableError"
    ),
    "stringd.extend": (
        "AgentCode CallInfo FlowCode FlowSteps Hooks Registry Tool ToolContext ToolFailure "
        "ToolOutput"
    ),
    "stringd.wire.chanflow": "Block BrokenBlock encode escape join parse unescape",
}
ROOMS = {
    "stringd.runs": (
        "Credentials DaemonPorts DecidedBy Denied FileRunStore Hooks Models Offer "
        "ProviderDirectory Registry RunLimits RunObserver RunService RunsConfig StrategyFileError "
        "StringQuestions ToolFailure VaultError WebFormat archive_problem check_source "
        "check_strategy definitions_problem offer_of schema_of unreadable_frames vault_of"
    ),
}


@pytest.mark.parametrize("module", [*PUBLIC, *ROOMS, "stringd.documents", "stringd.wire.runs"])
def test_every_exported_name_is_there(module: str) -> None:
    found = import_module(module)
    assert len(set(found.__all__)) == len(found.__all__)
    for name in found.__all__:
        assert getattr(found, name) is not None


@pytest.mark.parametrize(("module", "names"), [*PUBLIC.items(), *ROOMS.items()])
def test_exports_change_only_on_purpose(module: str, names: str) -> None:
    assert list(import_module(module).__all__) == names.split()


def test_unknown_names_are_attribute_errors() -> None:
    for module in ("stringd", "stringd.client", "stringd.runs"):
        with pytest.raises(AttributeError, match="nothing_like_this"):
            getattr(import_module(module), "nothing_like_this")  # noqa: B009


def test_the_package_itself_loads_next_to_nothing() -> None:
    code = "import sys, stringd; print(sorted(m for m in sys.modules if m.startswith('stringd.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
