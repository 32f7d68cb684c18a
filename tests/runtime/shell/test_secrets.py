"""No child of a topic sees a secret of the daemon."""

import os
from pathlib import Path

import pytest

from stringd.runtime.shell.once import OneShot
from tests.runtime.shell.conftest import StartShell
from tests.system.test_environment import MARKER, SECRETS


@pytest.mark.anyio
async def test_no_kind_of_child_sees_a_secret(start_shell: StartShell, tmp_path: Path) -> None:
    shell = await start_shell(**SECRETS)
    assert MARKER not in (await shell.run("env; cat /proc/self/environ")).output
    once = OneShot(
        "env; cat /proc/self/environ",
        home=str(tmp_path),
        cwd=str(tmp_path),
        base={**os.environ, **SECRETS},
    )
    assert MARKER not in (await once.reply(30)).output
