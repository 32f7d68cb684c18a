"""Processes for text of others: what reads it may be slow, large or broken, the daemon is not.

A regular expression or a parser in C holds the interpreter until it is done, in whatever thread
it runs. In a process of its own it can be ended. `ask` and `await_answer` hand a text to one.
"""

from stringd.system.workers.pool import (
    WorkerError,
    WorkerTask,
    ask,
    await_answer,
    end_workers,
)

__all__ = ["WorkerError", "WorkerTask", "ask", "await_answer", "end_workers"]
