"""Real shells for the tests of this room; each test's shells are gone when it ends."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from stringd.runtime.shell.command import ShellLimits
from stringd.runtime.shell.shell import Shell

StartShell = Callable[..., Awaitable[Shell]]

# Waiting for input shows after a tenth of `quiet`; `hard` is out of reach unless a test wants it.
PATIENT = ShellLimits(hard=60.0, quiet=5.0, grace=1.0)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The loop the daemon runs on."""
    return ("asyncio", {"use_uvloop": True})


@pytest.fixture
async def start_shell(tmp_path: Path) -> AsyncIterator[StartShell]:
    shells: list[Shell] = []

    async def start(
        limits: ShellLimits = PATIENT,
        cwd: Path | None = None,
        variables: dict[str, str] | None = None,
        **environment: str,
    ) -> Shell:
        shell = Shell.launch(
            home=str(tmp_path),
            cwd=str(cwd or tmp_path),
            base={**os.environ, **environment},
            variables=variables,
            limits=limits,
        )
        shells.append(shell)
        await shell.ready()
        return shell

    yield start
    for shell in shells:
        await shell.close()


@pytest.fixture
async def shell(start_shell: StartShell) -> Shell:
    return await start_shell()
