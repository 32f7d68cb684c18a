"""Users, topics, sessions and commands: what happens behind `/exec`. Knows no HTTP."""

from stringd.runtime.runtime import Answer, Runtime
from stringd.runtime.settings import RuntimeSettings
from stringd.runtime.topics.call import Caller

__all__ = ["Answer", "Caller", "Runtime", "RuntimeSettings"]
