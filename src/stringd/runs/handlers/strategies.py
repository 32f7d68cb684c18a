"""`discover_strategies`."""

import asyncio
from collections.abc import Mapping

from msgspec import UNSET

from stringd.runs.engine.config import RunsConfig
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.dispatch import Later
from stringd.runs.strategy.discover import Found, discover
from stringd.wire.runs import messages, requests
from stringd.wire.runs.catalog import DiscoveredStrategy, StrategyWarning


class StrategyHandlers:
    """The project directory is meant where a request names no directory."""

    def __init__(self, config: RunsConfig) -> None:
        self._config = config

    def handlers(self) -> Mapping[type, Later]:
        return {
            requests.DiscoverStrategies: self._discover,
        }

    async def _discover(
        self, request: requests.DiscoverStrategies, _client: ConnectedClient
    ) -> messages.Message:
        config = self._config
        cwd = config.project_dir / (request.cwd or "")
        found = await asyncio.to_thread(discover, cwd, config.data_dir, config.files())
        return messages.DiscoveredStrategies(
            strategies=[_discovered(each) for each in found.strategies],
            warnings=[StrategyWarning(path=str(w.path), reason=w.reason) for w in found.warnings],
        )


def _discovered(found: Found) -> DiscoveredStrategy:
    return DiscoveredStrategy(
        name=found.name,
        label=found.label,
        description=found.description or UNSET,
        path=str(found.path),
        origin=found.origin,
        manifest_path=str(found.manifest) if found.manifest else UNSET,
    )
