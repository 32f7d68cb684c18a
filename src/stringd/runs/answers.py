"""What a human answers an agent that waits: the first valid answer counts, and counts once."""

from stringd.runs import timeline
from stringd.runs.audience import Client
from stringd.runs.clock import timestamp
from stringd.runs.consent import human_decided
from stringd.runs.errors import RefusedError
from stringd.runs.known import KnownRuns
from stringd.runs.store import RunStore
from stringd.wire.runs import requests


class Answers:
    def __init__(self, known: KnownRuns, store: RunStore) -> None:
        self._known = known
        self._store = store

    def user_input(self, request: requests.UserInput) -> None:
        """Answer the oldest `request_input` of that agent. Raises `RefusedError`."""
        run = self._known.get(request.run_id)
        if run is None or not run.prompts.answer_input(request.agent_name, request.text):
            message = (
                f"No pending input request for run {request.run_id} agent {request.agent_name}"
            )
            raise RefusedError("NO_PENDING_INPUT", message)
        event = timeline.UserInput(ts=timestamp(), agent_name=request.agent_name, text=request.text)
        self._store.append(run.id, event)

    def question_response(self, request: requests.QuestionResponse) -> None:
        run, question = self._known.get(request.run_id), request.question_request_id
        if run is None or not run.prompts.answer_question(question, request.response):
            message = f"No pending question request {question} for run {request.run_id}"
            raise RefusedError("NO_PENDING_QUESTION", message)

    def permission_decision(self, request: requests.PermissionDecision, client: Client) -> None:
        """Settle a permission request, once. Raises `RefusedError`."""
        run, wanted = self._known.get(request.run_id), request.permission_request_id
        prompt = run.prompts.permission(wanted) if run else None
        if run is not None and prompt is not None:
            self._store.append(run.id, human_decided(prompt, request.decision, client.id))
        if run is None or not run.prompts.decide_permission(wanted, request.decision):
            message = f"No pending permission request {wanted} for run {request.run_id}"
            raise RefusedError("NO_PENDING_PERMISSION", message)
