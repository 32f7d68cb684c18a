"""The one door to files."""

from pathlib import Path

import pytest

from stringd.runtime.editing.paths import locate
from stringd.runtime.errors import CommandError
from stringd.runtime.runtime import Runtime
from stringd.runtime.settings import RuntimeSettings
from stringd.runtime.topics.call import Call, Caller
from stringd.runtime.topics.line import parse_line
from stringd.wire.topic import parse_topic


class World:
    """A home, an allowed directory, a directory vouched for, and one that is none of these."""

    def __init__(self, root: Path) -> None:
        self.home, self.allowed = root / "home", root / "allowed"
        self.project, self.outside = root / "project", root / "outside"
        self.data = root / "home" / "data"
        for path in (self.home, self.allowed, self.project, self.outside):
            path.mkdir()
            (path / "page.md").write_text("# Page\n", encoding="utf-8")
        runtime = Runtime(RuntimeSettings(self.data))
        runtime.topics.register("u", str(self.home), [str(self.allowed)])
        self.session = runtime.topics.session(runtime.topics.slot("u", parse_topic("main")))
        self.runtime = runtime

    def call(self, cwd: Path | None = None) -> Call:
        told = str(cwd) if cwd else None
        runtime, line = self.runtime, parse_line("/open x")
        return Call(runtime.services, runtime.topics, self.session, line, Caller(told))

    def refused(self, typed: str, cwd: Path | None = None) -> str:
        with pytest.raises(CommandError) as refusal:
            locate(self.call(cwd), typed)
        assert refusal.value.code is not None
        return refusal.value.code


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_names_start_at_home(world: World) -> None:
    for typed in ("page.md", "./page.md", "~/page.md", "sub/../page.md", f"{world.home}/page.md"):
        assert locate(world.call(), typed).path == world.home / "page.md"
    assert locate(world.call(), (world.home / "page.md").as_uri()).path == world.home / "page.md"


def test_explicitly_relative_names_start_where_the_client_stands(world: World) -> None:
    call = world.call(world.project)
    assert locate(call, "./page.md").path == world.project / "page.md"
    assert locate(call, "page.md").path == world.home / "page.md"


def test_allowed_and_vouched_for_directories_are_reachable(world: World) -> None:
    locate(world.call(), f"{world.allowed}/page.md")
    locate(world.call(world.project), f"{world.project}/page.md")
    assert world.refused(f"{world.project}/page.md") == "FILE_NOT_ALLOWED"


@pytest.mark.parametrize("typed", ["../outside/page.md", "~/../outside/page.md", "/etc/passwd"])
def test_everything_else_is_refused(world: World, typed: str) -> None:
    assert world.refused(typed) == "FILE_NOT_ALLOWED"
    assert world.refused(typed, world.project) == "FILE_NOT_ALLOWED"


def test_links_are_judged_by_where_they_lead(world: World) -> None:
    (world.home / "out").symlink_to(world.outside)
    (world.home / "in").symlink_to(world.allowed)
    assert world.refused("out/page.md") == "FILE_NOT_ALLOWED"
    found = locate(world.call(), "in/page.md")
    assert (found.path, found.real) == (world.home / "in/page.md", world.allowed / "page.md")


def test_the_way_on_from_a_link_is_where_it_leads(world: World) -> None:
    (world.home / "out.md").symlink_to(world.outside / "page.md")
    with pytest.raises(CommandError) as refusal:
        locate(world.call(), "out.md")
    assert refusal.value.message.endswith(f"stringd allow {world.outside}")


def test_a_sibling_with_the_same_beginning_is_not_inside(world: World) -> None:
    twin = Path(f"{world.home}-twin")
    twin.mkdir()
    assert world.refused(f"{twin}/x") == "FILE_NOT_ALLOWED"


def test_the_data_of_the_daemon_is_never_reachable(world: World) -> None:
    assert world.refused("data/users.json") == "FILE_NOT_ALLOWED"
    assert world.refused("./users.json", world.data) == "FILE_NOT_ALLOWED"
    (world.home / "link").symlink_to(world.data)
    assert world.refused("link/users.json") == "FILE_NOT_ALLOWED"


def test_a_nul_is_no_part_of_a_path(world: World) -> None:
    assert world.refused("a\0b") == "INVALID_PATH"
    assert world.refused("file:///%00") == "INVALID_PATH"
    assert world.refused("file:///a%00b.md") == "INVALID_PATH"


def test_an_address_that_cannot_be_read_is_no_file(world: World) -> None:
    assert world.refused("file://[x") == "INVALID_PATH"


def test_the_way_on_is_a_command_that_is_safe_to_paste(world: World) -> None:
    strange = world.outside / "a; rm -rf ~"
    strange.mkdir()
    with pytest.raises(CommandError) as refusal:
        locate(world.call(), f"{strange}/x.md")
    assert refusal.value.message.endswith(f"stringd allow '{strange}'")


def test_a_link_swapped_in_for_a_directory_is_noticed(world: World) -> None:
    (world.home / "dir").mkdir()
    locate(world.call(), "dir/x")
    (world.home / "dir").rmdir()
    (world.home / "dir").symlink_to(world.outside)
    assert world.refused("dir/x") == "FILE_NOT_ALLOWED"
