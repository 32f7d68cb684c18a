"""Runs: strategies executed by agents, seen and steered by people. This is the room's door.

Names are loaded when they are first used: most commands need little of this room.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from stringd.runs.agents.extensions import Registry
    from stringd.runs.agents.hooks import Hooks
    from stringd.runs.engine.config import RunsConfig
    from stringd.runs.engine.loading import check_source, check_strategy
    from stringd.runs.engine.observer import RunObserver
    from stringd.runs.engine.offers import Offer, offer_of
    from stringd.runs.errors import StrategyFileError
    from stringd.runs.guard.budget import RunLimits
    from stringd.runs.guard.errors import Denied
    from stringd.runs.mcp.definitions import definitions_problem
    from stringd.runs.models.credentials import Credentials, VaultError, vault_of
    from stringd.runs.models.directory import ProviderDirectory
    from stringd.runs.models.resolve import Models
    from stringd.runs.record.events import DecidedBy
    from stringd.runs.record.file_store import FileRunStore
    from stringd.runs.record.frames import unreadable_frames
    from stringd.runs.service import RunService
    from stringd.runs.tools.context import DaemonPorts, StringQuestions, WebFormat
    from stringd.runs.tools.output import ToolFailure
    from stringd.runs.tools.schema import schema_of
    from stringd.runs.tools.trash import archive_problem

__all__ = [
    "Credentials",
    "DaemonPorts",
    "DecidedBy",
    "Denied",
    "FileRunStore",
    "Hooks",
    "Models",
    "Offer",
    "ProviderDirectory",
    "Registry",
    "RunLimits",
    "RunObserver",
    "RunService",
    "RunsConfig",
    "StrategyFileError",
    "StringQuestions",
    "ToolFailure",
    "VaultError",
    "WebFormat",
    "archive_problem",
    "check_source",
    "check_strategy",
    "definitions_problem",
    "offer_of",
    "schema_of",
    "unreadable_frames",
    "vault_of",
]

_PLACES: Final = {
    "Credentials": "models.credentials",
    "DaemonPorts": "tools.context",
    "DecidedBy": "record.events",
    "Denied": "guard.errors",
    "FileRunStore": "record.file_store",
    "Hooks": "agents.hooks",
    "Models": "models.resolve",
    "Offer": "engine.offers",
    "ProviderDirectory": "models.directory",
    "Registry": "agents.extensions",
    "RunLimits": "guard.budget",
    "RunObserver": "engine.observer",
    "RunService": "service",
    "RunsConfig": "engine.config",
    "StrategyFileError": "errors",
    "StringQuestions": "tools.context",
    "ToolFailure": "tools.output",
    "VaultError": "models.credentials",
    "WebFormat": "tools.context",
    "archive_problem": "tools.trash",
    "check_source": "engine.loading",
    "check_strategy": "engine.loading",
    "definitions_problem": "mcp.definitions",
    "offer_of": "engine.offers",
    "schema_of": "tools.schema",
    "unreadable_frames": "record.frames",
    "vault_of": "models.credentials",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{place}"), name)
