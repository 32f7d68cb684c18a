"""`hub_list`, `hub_install`, `hub_update` and `hub_remove`: packages of strategies.

There is no index: the name to install is the source of the package.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec import UNSET

from stringd.net.fetch import Fetcher
from stringd.runs.engine.config import RunsConfig
from stringd.runs.handlers.client import ConnectedClient
from stringd.runs.handlers.dispatch import Later
from stringd.runs.strategy.git import read_git
from stringd.runs.strategy.package_sources import (
    GitSource,
    PathSource,
    WebSource,
    read_package_source,
    read_path,
    read_web,
)
from stringd.runs.strategy.packages import PackageContent, StrategyPackages
from stringd.wire.runs import messages, requests


class HubHandlers:
    def __init__(self, config: RunsConfig) -> None:
        self._packages = StrategyPackages(config.data_dir)
        self._fetcher = config.ports.fetcher

    def handlers(self) -> Mapping[type, Later]:
        return {
            requests.HubList: self._list,
            requests.HubInstall: self._install,
            requests.HubUpdate: self._update,
            requests.HubRemove: self._remove,
        }

    async def _list(self, _request: requests.HubList, _client: ConnectedClient) -> messages.Message:
        installed = await asyncio.to_thread(self._packages.installed)
        return messages.HubPackages(operation="list", available=[], installed=installed)

    async def _install(
        self, request: requests.HubInstall, _client: ConnectedClient
    ) -> messages.Message:
        content = await self._content(request.name)
        package = await asyncio.to_thread(
            self._packages.install, content, allow_code=request.allow_code is True
        )
        return messages.HubPackages(operation="install", installed_package=package)

    async def _update(
        self, request: requests.HubUpdate, _client: ConnectedClient
    ) -> messages.Message:
        before = await asyncio.to_thread(self._packages.find, request.name)
        content = await self._content(before.source if before.source is not UNSET else before.name)
        package = await asyncio.to_thread(
            self._packages.install,
            content,
            allow_code=request.allow_code is True,
            update=before.name,
        )
        return messages.HubPackages(operation="update", installed_package=package)

    async def _remove(
        self, request: requests.HubRemove, _client: ConnectedClient
    ) -> messages.Message:
        removed = await asyncio.to_thread(self._packages.remove, request.name)
        return messages.HubPackages(operation="remove", removed=removed)

    async def _content(self, text: str) -> PackageContent:
        """What a source holds now. Raises `PackageError`."""
        match read_package_source(text):
            case PathSource() as source:
                return await asyncio.to_thread(read_path, source)
            case WebSource() as source:
                async with self._network() as fetcher:
                    return await read_web(source, fetcher)
            case GitSource() as source:
                async with self._network() as fetcher:
                    return await read_git(source, fetcher)

    @asynccontextmanager
    async def _network(self) -> AsyncIterator[Fetcher]:
        if self._fetcher is not None:
            yield self._fetcher
            return
        fetcher = Fetcher()
        try:
            yield fetcher
        finally:
            await fetcher.close()
