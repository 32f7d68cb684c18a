"""Messages from a client. Unknown keys are ignored; `requestId` is echoed on every answer."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Filled = Annotated[str, Meta(min_length=1)]


class RunsRequest(Struct, rename="camel", kw_only=True, frozen=True, tag_field="type"):
    request_id: str | UnsetType = UNSET


class OfRun(RunsRequest, frozen=True, kw_only=True):
    run_id: Filled


class Ping(RunsRequest, tag="ping", frozen=True, kw_only=True):
    pass


NEITHER_ID_NOR_PATH = "prepare_run requires runId or strategyPath"


class Budget(Struct, rename="camel", kw_only=True, frozen=True):
    """Ours: what a run may use. `seconds` is wall time, `cost` US dollars at known prices."""

    tokens: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    tool_calls: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    seconds: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    cost: Annotated[float, Meta(ge=0)] | UnsetType = UNSET


class OfferedTool(Struct, rename="camel", kw_only=True, frozen=True):
    """Ours: a tool that the client itself carries out. `parameters` is a JSON Schema."""

    name: Filled
    description: str = ""
    parameters: dict[str, Any] = {}
    guidance: str | UnsetType = UNSET
    effect: Literal["inward", "reads", "writes"] = "writes"
    repeatable: bool = False


class PrepareRun(RunsRequest, tag="prepare_run", frozen=True, kw_only=True):
    """`strategy`, `tools` and `budget` are ours.

    `strategy` is what a strategy file would say, `tools` are offered to its agents by the client.
    """

    run_id: Filled | UnsetType = UNSET
    strategy_path: Filled | UnsetType = UNSET
    model_override: Filled | UnsetType = UNSET
    cwd: Filled | UnsetType = UNSET
    manifest_path: Filled | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    strategy: dict[str, Any] | UnsetType = UNSET
    tools: list[OfferedTool] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.run_id is UNSET and self.strategy_path is UNSET and self.strategy is UNSET:
            raise ValueError(NEITHER_ID_NOR_PATH)


class StartRun(OfRun, tag="start_run", frozen=True, kw_only=True):
    input: str = ""


class ContinueRun(OfRun, tag="continue_run", frozen=True, kw_only=True):
    """`resume` is ours: continue after the last completed step instead of restarting the flow."""

    input: str
    resume: bool = False


class StopRun(OfRun, tag="stop_run", frozen=True, kw_only=True):
    pass


class UserInput(OfRun, tag="user_input", frozen=True, kw_only=True):
    agent_name: Filled
    text: str


class QuestionResponse(OfRun, tag="question_response", frozen=True, kw_only=True):
    question_request_id: Filled
    response: str


class PermissionDecision(OfRun, tag="permission_decision", frozen=True, kw_only=True):
    """`reason` is ours: why it is denied, for the agent to read.

    So is `command`: what to run instead of the command that was asked about.
    """

    permission_request_id: Filled
    decision: Literal["allow", "deny", "allow-session", "deny-session"]
    reason: str | UnsetType = UNSET
    command: Filled | UnsetType = UNSET


class ListDecisions(OfRun, tag="list_decisions", frozen=True, kw_only=True):
    """Ours: what was decided for the rest of a live run."""


class RevokeDecision(OfRun, tag="revoke_decision", frozen=True, kw_only=True):
    """Ours: take one of these decisions back."""

    decision_id: Filled


class UpdatePolicy(OfRun, tag="update_policy", frozen=True, kw_only=True):
    tool: str | UnsetType = UNSET
    mode: Literal["read", "write"]
    allow: list[str] | UnsetType = UNSET
    deny: list[str] | UnsetType = UNSET
    default: Literal["allow", "deny", "ask"] | UnsetType = UNSET


class SteerRun(OfRun, tag="steer_run", frozen=True, kw_only=True):
    """`mode` and `receipt` are ours.

    `steer` lets a call that is under way see the text before its next model round-trip, `call` only
    the next agent call. A receipt is `steer_delivered` or `steer_undelivered`, to the sender alone.
    """

    text: Filled
    mode: Literal["call", "steer"] = "call"
    receipt: bool = False


class Subscribe(OfRun, tag="subscribe", frozen=True, kw_only=True):
    """`from_seq` is ours: replay every broadcast from that number on, then follow."""

    from_seq: int | UnsetType = UNSET


class Unsubscribe(OfRun, tag="unsubscribe", frozen=True, kw_only=True):
    pass


class ListStrategies(RunsRequest, tag="list_strategies", frozen=True, kw_only=True):
    pass


class ListRuns(RunsRequest, tag="list_runs", frozen=True, kw_only=True):
    cwd: str | UnsetType = UNSET
    details: bool = False
    """Ours: with what each run took and said last."""


class ListProviders(RunsRequest, tag="list_providers", frozen=True, kw_only=True):
    scope: str | UnsetType = UNSET
    live: bool = False
    provider_id: str | UnsetType = UNSET
    """Ours: only this one."""


class GetAvailableModels(RunsRequest, tag="get_available_models", frozen=True, kw_only=True):
    model_id: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET


class RegisterProvider(RunsRequest, tag="register_provider", frozen=True, kw_only=True):
    provider_id: Filled


class UnregisterProvider(RunsRequest, tag="unregister_provider", frozen=True, kw_only=True):
    provider_id: Filled


class SetCredential(RunsRequest, tag="set_credential", frozen=True, kw_only=True):
    provider_id: Filled
    credential_type: Literal["api", "oauth", "custom"]
    api_key: Filled | UnsetType = UNSET
    oauth_token: Filled | UnsetType = UNSET
    custom_data: dict[str, Any] | UnsetType = UNSET


class ListMcpServers(RunsRequest, tag="list_mcp_servers", frozen=True, kw_only=True):
    cwd: Filled | UnsetType = UNSET
    run_id: Filled | UnsetType = UNSET
    strategy_path: Filled | UnsetType = UNSET


class UpdateMcpServer(RunsRequest, tag="update_mcp_server", frozen=True, kw_only=True):
    server_id: Filled
    enabled: bool
    scope: Literal["default", "run"]
    cwd: Filled | UnsetType = UNSET
    run_id: Filled | UnsetType = UNSET
    strategy_path: Filled | UnsetType = UNSET


class TrashList(RunsRequest, tag="trash_list", frozen=True, kw_only=True):
    cwd: str | UnsetType = UNSET


class TrashRestore(RunsRequest, tag="trash_restore", frozen=True, kw_only=True):
    cwd: Filled
    trash_path: Filled
    target_path: str | UnsetType = UNSET


class TrashClear(RunsRequest, tag="trash_clear", frozen=True, kw_only=True):
    cwd: str | UnsetType = UNSET


class GetTimeline(OfRun, tag="get_timeline", frozen=True, kw_only=True):
    """Ours: the history of a run on disk; with `activity` also what was done in it."""

    activity: bool = False


class DeleteRun(OfRun, tag="delete_run", frozen=True, kw_only=True):
    """Ours: forget a run that is not live, its history included."""


class ForkRun(OfRun, tag="fork_run", frozen=True, kw_only=True):
    """Ours: a new run that begins with the steps another completed, up to and with `at`.

    `at` is the path of a completed step, or its name: then the last one of that name.
    """

    at: Filled
    new_run_id: Filled | UnsetType = UNSET


class RemoveCredential(RunsRequest, tag="remove_credential", frozen=True, kw_only=True):
    """Ours: forget what `set_credential` kept."""

    provider_id: Filled


class DiscoverStrategies(RunsRequest, tag="discover_strategies", frozen=True, kw_only=True):
    """Ours: which strategies could be run from a directory."""

    cwd: Filled | UnsetType = UNSET


class ToolAnswer(OfRun, tag="tool_answer", frozen=True, kw_only=True):
    """Ours: what came of a `tool_asked`; the model reads `output`."""

    call_id: Filled
    output: str
    ok: bool = True


class HubList(RunsRequest, tag="hub_list", frozen=True, kw_only=True):
    pass


class HubInstall(RunsRequest, tag="hub_install", frozen=True, kw_only=True):
    name: Filled
    allow_code: bool = False


class HubUpdate(RunsRequest, tag="hub_update", frozen=True, kw_only=True):
    name: Filled
    allow_code: bool = False


class HubRemove(RunsRequest, tag="hub_remove", frozen=True, kw_only=True):
    name: Filled


ClientMessage = (
    PrepareRun
    | StartRun
    | ContinueRun
    | StopRun
    | UserInput
    | QuestionResponse
    | PermissionDecision
    | UpdatePolicy
    | SteerRun
    | Subscribe
    | Unsubscribe
    | ListStrategies
    | ListRuns
    | ListProviders
    | GetAvailableModels
    | RegisterProvider
    | UnregisterProvider
    | SetCredential
    | ListMcpServers
    | UpdateMcpServer
    | TrashList
    | TrashRestore
    | TrashClear
    | HubList
    | HubInstall
    | HubUpdate
    | HubRemove
    | Ping
    | GetTimeline
    | DeleteRun
    | RemoveCredential
    | DiscoverStrategies
    | ForkRun
    | ToolAnswer
    | ListDecisions
    | RevokeDecision
)
