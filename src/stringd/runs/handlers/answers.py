"""What is answered to an agent that waits: the first valid answer counts, and counts once.

A prompt that was open when the daemon was killed can be answered before its run is resumed: the
answer is kept, nothing happens yet, and the resumed run takes it instead of asking again.
"""

from collections.abc import Callable, Iterable

from stringd.runs.engine.human import asked_for, decided, prompt_of
from stringd.runs.engine.live_runs import LiveRuns
from stringd.runs.engine.pending import prompt_kind
from stringd.runs.engine.services import RunServices
from stringd.runs.errors import RefusedError
from stringd.runs.guard.permissions import EDITABLE, HumanAnswer
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.record.events import PromptAsked, PromptKind
from stringd.runs.record.resume import read_journal
from stringd.runs.record.views import latest_start
from stringd.wire.runs import requests
from stringd.wire.runs.prompts import input_id, prompt_id


class Answers:
    """Keeps what interrupted runs had asked when the daemon was killed, until they continue."""

    def __init__(self, known: LiveRuns, services: RunServices) -> None:
        self._known = known
        self._services = services
        self._interrupted: dict[str, list[PromptAsked]] = {}
        self._strategies: dict[str, str] = {}

    def read_interrupted(self, run_ids: Iterable[str]) -> None:
        """Look up what these runs had asked and nobody answered. Touches files, not the loop."""
        for run_id in run_ids:
            events = self._services.store.timeline(run_id)
            asked = read_journal(events).unanswered
            started = latest_start(events)
            if asked and started is not None:
                self._interrupted[run_id] = asked
                self._strategies[run_id] = started.strategy_name

    def announce_interrupted(self) -> None:
        """Let the observer know what waits since an earlier life of the daemon, oldest first."""
        observer = self._services.config.observer
        found = [(each, run_id) for run_id, asked in self._interrupted.items() for each in asked]
        for each, run_id in sorted(found, key=lambda one: one[0].ts):
            observer.still_asked(self._strategies[run_id], prompt_of(run_id, each), each.ts)

    def forget(self, run_id: str) -> None:
        """The run continues, or is deleted: what it had asked is no longer answered here."""
        for each in self._interrupted.pop(run_id, ()):
            prompt = prompt_of(run_id, each)
            observer = self._services.config.observer
            observer.resolved(run_id, prompt_kind(prompt), prompt_id(prompt), "", None)
        self._strategies.pop(run_id, None)

    def user_input(self, request: requests.UserInput, client: ConnectedClient) -> None:
        """Answer the oldest `request_input` of that agent. Raises `RefusedError`."""
        run_id, agent, text = request.run_id, request.agent_name, request.text
        run = self._known.get(run_id)
        prompt = run.prompts.answer_input(agent, text) if run else None
        if not (prompt or self._keep(run_id, _asked("input", agent_name=agent), text)):
            message = f"No pending input request for run {run_id} agent {agent}"
            raise RefusedError("NO_PENDING_INPUT", message)
        self._services.recorder(run_id).human_input(agent, text, client.by)
        self._resolved(run_id, "input", input_id(agent), text, client)

    def question_response(
        self, request: requests.QuestionResponse, client: ConnectedClient
    ) -> None:
        """Answer a question, once. Raises `RefusedError`."""
        run_id, wanted, text = request.run_id, request.question_request_id, request.response
        run = self._known.get(run_id)
        open_ = run.prompts.answer_question(wanted, text) if run else None
        prompt = open_ or self._keep(run_id, _asked("question", request_id=wanted), text)
        if prompt is None:
            message = f"No pending question request {wanted} for run {run_id}"
            raise RefusedError("NO_PENDING_QUESTION", message)
        self._services.recorder(run_id).human_input(prompt.agent_name, text, client.by)
        self._resolved(run_id, "question", wanted, text, client)

    def permission_decision(
        self, request: requests.PermissionDecision, client: ConnectedClient
    ) -> None:
        """Settle a permission request, once. Raises `RefusedError`."""
        run_id, wanted, decision = request.run_id, request.permission_request_id, request.decision
        reason = (request.reason or "").strip()
        command = request.command or ""
        answer = HumanAnswer(decision, reason, command).text
        if command:
            self._check_editable(run_id, wanted, decision)
        run = self._known.get(run_id)
        open_ = run.prompts.decide_permission(wanted, answer) if run else None
        prompt = open_ or self._keep(run_id, _asked("permission", request_id=wanted), answer)
        if prompt is None:
            message = f"No pending permission request {wanted} for run {run_id}"
            raise RefusedError("NO_PENDING_PERMISSION", message)
        settled = decided(asked_for(prompt), decision, client.by, reason, command)
        self._services.recorder(run_id).permission_decided(settled)
        self._resolved(run_id, "permission", wanted, decision, client)

    def _check_editable(self, run_id: str, wanted: str, decision: str) -> None:
        """Another command can only be allowed, once, where one was asked about."""
        run = self._known.get(run_id)
        open_ = run.prompts.find_permission(wanted) if run else None
        matches = _asked("permission", request_id=wanted)
        kept = next(filter(matches, self._interrupted.get(run_id, [])), None)
        prompt = open_ or kept
        details = asked_for(prompt).details if prompt else {EDITABLE: True}
        if decision != "allow" or not (details or {}).get(EDITABLE):
            raise RefusedError(
                "INVALID_MESSAGE",
                "command goes with the decision allow, for a request whose details say editable",
            )

    def _resolved(
        self, run_id: str, kind: PromptKind, request_id: str, answer: str, client: ConnectedClient
    ) -> None:
        self._services.config.observer.resolved(run_id, kind, request_id, answer, client.by)

    def _keep(
        self, run_id: str, wanted: Callable[[PromptAsked], bool], answer: str
    ) -> PromptAsked | None:
        """Keep the answer to a prompt of an interrupted run, if there is such a prompt."""
        waiting = self._interrupted.get(run_id, [])
        prompt = next(filter(wanted, waiting), None)
        if prompt is None:
            return None
        event = self._services.recorder(run_id).prompt_answered(prompt.request_id, answer)
        waiting.remove(prompt)
        run = self._known.get(run_id)
        if run is not None and run.prepared is not None:
            run.prepared.journal.unfinished.note(event)
        return prompt


def _asked(kind: PromptKind, **named: str) -> Callable[[PromptAsked], bool]:
    def matches(prompt: PromptAsked) -> bool:
        return prompt.kind == kind and all(getattr(prompt, k) == v for k, v in named.items())

    return matches
