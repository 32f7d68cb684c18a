"""What the segments of a daemon share: its configuration, and what it holds open for all."""

from dataclasses import dataclass, field

from stringd.runs.agents.templates import Templates
from stringd.runs.engine.config import RunsConfig
from stringd.runs.mcp.servers import McpPool
from stringd.runs.models.resolve import Models
from stringd.runs.record.recorder import Recorder
from stringd.runs.record.store import RunStore


@dataclass(frozen=True)
class RunServices:
    """One per daemon."""

    config: RunsConfig
    store: RunStore
    models: Models
    templates: Templates
    pool: McpPool = field(default_factory=McpPool)

    def recorder(self, run_id: str) -> Recorder:
        """The writer of a run's timeline."""
        return Recorder(self.store, run_id)
