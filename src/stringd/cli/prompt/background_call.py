"""Waiting for a reply in a way that Ctrl-C can end."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """A call in a thread of its own: Ctrl-C reaches whoever waits for it."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._over = threading.Event()
        self._value: T | None = None
        self._error: Exception | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def result(self) -> T | None:
        """What the call returned, or raised; `KeyboardInterrupt` leaves it at work."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def is_over(self, seconds: float) -> bool:
        """Whether the call has ended, or does so within this time."""
        return self._over.wait(seconds)

    def _work(self) -> None:
        try:
            self._value = self._call()
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            self._error = error
        finally:
            self._over.set()
