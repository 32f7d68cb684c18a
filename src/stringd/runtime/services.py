"""What every command of the daemon shares."""

import asyncio
import threading
from dataclasses import dataclass, field
from os.path import realpath
from typing import Self

from stringd.actions.run import Engine
from stringd.actions.walls import ActionWalls
from stringd.documents.cache import DocumentCache
from stringd.net.fetch import Fetcher
from stringd.net.mcp_client import McpServers
from stringd.runtime.inbox import Inbox
from stringd.runtime.settings import OWN_PLACES, WORK_DIRECTORY, RuntimeSettings
from stringd.system.open_apps import OpenApps
from stringd.system.sandbox import Level, Network
from stringd.system.trust import TrustStore


@dataclass(frozen=True, slots=True)
class Services:
    """Made once with the runtime, closed with it."""

    settings: RuntimeSettings
    fetcher: Fetcher
    engine: Engine
    mcp: McpServers[tuple[str, str]]
    data_root: str
    """Where the daemon's own data really is."""
    inbox: Inbox
    trust: TrustStore = field(default_factory=TrustStore)
    documents: DocumentCache = field(default_factory=DocumentCache)
    edits: threading.Lock = field(default_factory=threading.Lock)
    """Held while a file is changed."""

    @classmethod
    def of(cls, settings: RuntimeSettings, fetcher: Fetcher | None = None) -> Self:
        fetcher = fetcher or Fetcher(online=settings.http_loading)
        engine = Engine(
            fetcher.fetch,
            settings.http_action_timeout,
            settings.cli_action_timeout,
            settings.show_secrets,
            walls=ActionWalls(
                None if settings.action_sandbox is None else Level(settings.action_sandbox),
                (settings.data_dir,),
                (*OWN_PLACES, WORK_DIRECTORY),
                OpenApps(),
                Network(settings.action_network),
            ),
        )
        return cls(
            settings,
            fetcher,
            engine,
            McpServers(fetcher=fetcher),
            realpath(settings.data_dir),
            Inbox(settings.data_dir),
        )

    async def close(self) -> None:
        """End what is shared; no command runs any more."""
        await self.engine.jobs.close()
        await asyncio.to_thread(self.engine.walls.close)
        await self.mcp.close()
        await self.fetcher.close()
