"""The rules and grants of a running gate: decides without a key where they allow or deny it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from stringd.gate.grants import GrantBook
from stringd.gate.judge import Attempt, Sentence, judge
from stringd.gate.rules import LIMIT_SECONDS, Effect, Rule

ENDED: Final = "the grant ended in this moment"


class StandingPolicy:
    """Rules, grants, and how often they were used."""

    def __init__(
        self, rules: Sequence[Rule] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rules = tuple(rules)
        self.grants = GrantBook(clock)
        self._clock = clock
        self._lock = threading.Lock()
        # By rule, whoever asked: a program that leaves its tree is another caller each time.
        self._used: dict[str, deque[float]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but the person to decide."""
        return not self.rules and not len(self.grants)

    def explain(self, attempt: Attempt) -> Sentence:
        """What would be decided now."""
        with self._lock:
            return self._judge(attempt)

    def says_ask(self, attempt: Attempt) -> str:
        """Which rule wants this asked each time, so that it is not granted; empty for none."""
        ruling = self.explain(attempt)
        return f"{ruling.why}, each time." if ruling.effect is Effect.ASK and ruling.by else ""

    def decide(self, attempt: Attempt) -> Sentence:
        """Decide, and count the use of whatever allowed it."""
        with self._lock:
            ruling = self._judge(attempt)
            if ruling.effect is not Effect.ALLOW:
                return ruling
            if ruling.grant is not None:
                if self.grants.use(ruling.grant) is None:
                    return Sentence(Effect.ASK, why=ENDED)
                return ruling
            now = self._clock()
            for rule in ruling.rules:
                self._used.setdefault(rule.name, deque()).append(now)
            return ruling

    def _judge(self, attempt: Attempt) -> Sentence:
        self._forget()
        uses = {name: len(times) for name, times in self._used.items()}
        return judge(self.rules, self.grants.live(), replace(attempt, uses=uses))

    def _forget(self) -> None:
        start = self._clock() - LIMIT_SECONDS
        for key, times in list(self._used.items()):
            while times and times[0] <= start:
                times.popleft()
            if not times:
                del self._used[key]
