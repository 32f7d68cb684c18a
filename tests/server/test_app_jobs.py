"""What an app's action leaves running, behind walls and in the open: who sees it, when it ends."""

import os
import select
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stringd.runtime.settings import WORK_DIRECTORY
from stringd.system.sandbox import Nothing, available
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.person import Person

LEVELS = ("open",) if isinstance(available(), Nothing) else ("workspace", "open")
# The job holds the other end of `held` until it ends, and ends by itself when it reads a line.
JOB = "sh -c 'exec >held; echo up; touch up; read line <go' </dev/null >/dev/null 2>&1 &"
WAIT = "until [ -e up ]; do sleep 0.01; done"
PAGE = f"""---
type: app
name: server
---
# Server

```act.serve
CLI cd $STRING_WORK_DIR; setsid {JOB} {WAIT}; echo served
```

```act.serve-in-group
CLI cd $STRING_WORK_DIR; {JOB} {WAIT}; echo served
```

```act.serve-soon
CLI cd $STRING_WORK_DIR; setsid {JOB} echo served
```
"""


class Place:
    """A daemon, a user with the app, and the pipe that says whether the job lives."""

    def __init__(self, daemon: Daemon, base: Path) -> None:
        self.daemon = daemon
        self.owner = Person(daemon.port, base.name, base / "user")
        # Where the action works: as an app in its data, as a page beside it.
        self.data = self.owner.home / WORK_DIRECTORY / "server"
        self.data.mkdir(parents=True, mode=0o700)
        os.mkfifo(self.data / "held")
        os.mkfifo(self.data / "go")
        self.held = os.open(self.data / "held", os.O_RDONLY | os.O_NONBLOCK)

    def serve(self, action: str = "serve") -> None:
        """Leave a job running."""
        self.owner.put("app/string.md", PAGE)
        self.owner.gets("/install ./app", cwd=self.owner.home)
        self.owner.gets("/open", "app:server")
        # The action has made a file too, and the reply may say so.
        said = self.owner.gets(f"/act.{action}", "app:server")
        assert said.partition("\n")[0] == "served"
        assert self.read() == b"up\n"

    def wait_for_the_end(self) -> None:
        assert self.read() == b"", "the job is still alive"

    def jobs(self) -> list[str]:
        lines = self.owner.gets("/info", "app:server").splitlines()
        return [line for line in lines if line.startswith("job: ")]

    def close(self) -> None:
        os.close(self.held)

    def read(self) -> bytes:
        assert select.select([self.held], [], [], WAIT_SECONDS)[0], "the job says nothing"
        return os.read(self.held, 100)


@pytest.fixture(scope="module", params=LEVELS)
def shared(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Daemon]:
    level: str = request.param
    with Daemon(tmp_path_factory.mktemp("jobs"), STRINGD_ACTION_SANDBOX=level) as daemon:
        yield daemon


@pytest.fixture
def place(shared: Daemon, tmp_path: Path) -> Iterator[Place]:
    with closing(Place(shared, tmp_path)) as place:
        yield place


@pytest.fixture(params=LEVELS)
def own_place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """One whose daemon the test ends."""
    with (
        Daemon(tmp_path / "daemon", STRINGD_ACTION_SANDBOX=request.param) as daemon,
        closing(Place(daemon, tmp_path)) as place,
    ):
        yield place


@pytest.mark.parametrize("action", ["serve", "serve-in-group", "serve-soon"])
def test_a_job_outlives_its_action_and_is_listed_until_it_ends(place: Place, action: str) -> None:
    place.serve(action)
    (job,) = place.jobs()
    assert "sh -c" in job
    (place.data / "go").write_text("end\n")
    place.wait_for_the_end()
    deadline = time.monotonic() + WAIT_SECONDS
    while place.jobs():
        assert time.monotonic() < deadline, "its sandbox is still alive"


def test_uninstalling_the_app_ends_its_jobs(place: Place) -> None:
    place.serve()
    assert "Ended 1 running job" in place.owner.gets("/uninstall server")
    place.wait_for_the_end()


def test_stopping_the_daemon_ends_the_jobs(own_place: Place) -> None:
    own_place.serve()
    own_place.daemon.stop()
    own_place.wait_for_the_end()


def test_killing_the_daemon_ends_the_jobs(own_place: Place) -> None:
    own_place.serve()
    own_place.daemon.kill()
    own_place.wait_for_the_end()


def test_a_page_that_is_not_an_app_leaves_nothing(place: Place) -> None:
    for name in ("held", "go"):
        (place.owner.home / name).hardlink_to(place.data / name)
    place.owner.put("page.md", PAGE.partition("# Server")[2])
    place.owner.gets("/open page.md")
    place.owner.gets("/act.serve")
    assert place.read() == b"up\n"
    place.wait_for_the_end()
