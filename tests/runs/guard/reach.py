"""Every way a built-in tool reaches a path, and every way a path can be written."""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from stringd.runs.tools.trash import Trash
from tests.runs.support import Json, scripted, sequential, strategy

Direction = Literal["read", "write"]
State = dict[str, tuple[object, ...]]


class Reach(NamedTuple):
    """One argument of one tool that leads to a file or folder.

    `leaf` is the file meant in a tree, empty for its folder. `done` tells from the tree and the
    output that the tool did what it was asked. A `variant` is another use of the same argument.
    """

    tool: str
    parameter: str
    direction: Direction
    leaf: str
    args: Callable[["Scene", "Tree", str], Json]
    done: Callable[["Tree", str], bool]
    variant: bool = False

    @property
    def operation(self) -> str:
        return f"fs.{self.direction}"


class Tree:
    """A folder with known content; `word` tells it from others."""

    def __init__(self, root: Path, word: str) -> None:
        self.root = root
        self.word = word
        self.text = f"{word} text\n"
        self.sha256 = hashlib.sha256(self.text.encode()).hexdigest()
        plan = {**strategy(sequential("a"), a=scripted(f"{word} text")), "name": word}
        self._plan = json.dumps(plan)
        self._made: State = {}

    def make(self) -> None:
        """Everything as it was at the beginning."""
        if self._made and self._made == self.state():
            return
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "deep").mkdir(parents=True)
        (self.root / "file.txt").write_text(self.text, "utf-8")
        (self.root / "deep" / "under.txt").write_text(self.text, "utf-8")
        (self.root / "plan.json").write_text(self._plan, "utf-8")
        self._made = self.state()

    def link(self, path: Path, target: str) -> None:
        """From now on this link belongs to the tree."""
        path.symlink_to(target)
        self._made = self.state()

    def state(self) -> State:
        """What anybody could tell apart: names, kinds, permissions, times and bytes."""
        if not self.root.is_dir():
            return {}
        return {str(path): _facts(path) for path in (self.root, *self.root.rglob("*"))}

    def holds(self, name: str, text: str) -> bool:
        path = self.root / name
        return path.is_file() and path.read_text("utf-8").strip() == text.strip()


def _facts(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    content: object = None
    if stat.S_ISLNK(status.st_mode):
        content = path.readlink()
    elif stat.S_ISREG(status.st_mode):
        content = path.read_bytes()
    return status.st_mode, status.st_ino, status.st_mtime_ns, content


@dataclass
class Scene:
    """A workspace with a folder in it, and two folders outside."""

    work: Path
    inside: Tree
    outside: Tree
    beside: Tree
    trash: Trash
    kept: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, base: Path, data_dir: Path) -> "Scene":
        work = base / "work"
        inside, outside = Tree(work / "place", "inner"), Tree(base / "outside", "outer")
        scene = cls(
            work, inside, outside, Tree(base / "outside-too", "other"), Trash(data_dir, work)
        )
        work.mkdir()
        scene.reset()
        return scene

    def reset(self) -> None:
        """The trees as they were, and what was deleted back in the trash."""
        for tree in (self.inside, self.outside, self.beside):
            tree.make()
        (self.work / "mine.txt").write_text("mine", "utf-8")
        (self.work / "moved.txt").unlink(missing_ok=True)
        for original in self.kept:
            self._keep(original)

    def archive(self, original: str) -> str:
        """The archive of a deleted file, there at the beginning of every call."""
        self.kept.append(original)
        return str(self._keep(original))

    def _keep(self, original: str) -> Path:
        made = self.trash.put(original, b"new", 0o644, run_id="r", agent_name="a")
        return made.rename(made.with_name(f"kept{self.kept.index(original)}.tar.gz"))


MINE = hashlib.sha256(b"mine").hexdigest()


def _gone(name: str) -> Callable[[Tree, str], bool]:
    return lambda tree, _output: not (tree.root / name).exists()


def _holds(name: str) -> Callable[[Tree, str], bool]:
    return lambda tree, _output: tree.holds(name, "new")


def _says(text: str = "{word} text") -> Callable[[Tree, str], bool]:
    return lambda tree, output: text.format(word=tree.word) in output


def _original(scene: Scene, _tree: Tree, path: str) -> Json:
    return {"trashedPath": scene.archive(path)}


REACHES: dict[str, Reach] = {
    "read_file": Reach(
        "read_file", "path", "read", "file.txt", lambda _s, _t, p: {"path": p}, _says()
    ),
    "list_directory": Reach(
        "list_directory", "path", "read", "", lambda _s, _t, p: {"path": p}, _says("file.txt")
    ),
    "list_directory all the way": Reach(
        "list_directory",
        "path",
        "read",
        "",
        lambda _s, _t, p: {"path": p, "recursive": True, "includeHidden": True},
        _says("deep/under.txt"),
        variant=True,
    ),
    "search_files by text": Reach(
        "search_files",
        "root",
        "read",
        "",
        lambda _s, _t, p: {
            "query": "text",
            "mode": "text",
            "root": p,
            "includeGlobs": ["**/*.txt"],
        },
        _says(),
    ),
    "search_files by regex": Reach(
        "search_files",
        "root",
        "read",
        "",
        lambda _s, _t, p: {
            "query": "te.t",
            "mode": "regex",
            "root": p,
            "includeGlobs": ["**/*.txt"],
        },
        _says(),
        variant=True,
    ),
    "search_files by path": Reach(
        "search_files",
        "root",
        "read",
        "",
        lambda _s, _t, p: {"query": "under", "mode": "path", "root": p},
        _says("under.txt"),
        variant=True,
    ),
    "glob": Reach(
        "glob",
        "root",
        "read",
        "",
        lambda _s, _t, p: {"pattern": "**/*.txt", "root": p},
        _says("under"),
    ),
    "create_file": Reach(
        "create_file",
        "path",
        "write",
        "new.txt",
        lambda _s, _t, p: {"path": p, "content": "new"},
        _holds("new.txt"),
    ),
    "create_file with folders": Reach(
        "create_file",
        "path",
        "write",
        "a/b/new.txt",
        lambda _s, _t, p: {"path": p, "content": "new", "createParentDirectories": True},
        _holds("a/b/new.txt"),
        variant=True,
    ),
    "write_file": Reach(
        "write_file",
        "path",
        "write",
        "file.txt",
        lambda _s, t, p: {"path": p, "content": "new", "expectedSha256": t.sha256},
        _holds("file.txt"),
    ),
    "edit_file": Reach(
        "edit_file",
        "path",
        "write",
        "file.txt",
        lambda _s, _t, p: {"path": p, "edits": [{"oldText": " text", "newText": " changed"}]},
        lambda tree, _output: tree.holds("file.txt", f"{tree.word} changed"),
    ),
    "delete_file": Reach(
        "delete_file", "path", "write", "file.txt", lambda _s, _t, p: {"path": p}, _gone("file.txt")
    ),
    "delete_file for good": Reach(
        "delete_file",
        "path",
        "write",
        "file.txt",
        lambda _s, _t, p: {"path": p, "permanent": True},
        _gone("file.txt"),
        variant=True,
    ),
    "restore_file": Reach(
        "restore_file",
        "targetPath",
        "write",
        "a/new.txt",
        lambda s, _t, p: {"trashedPath": s.archive("gone.txt"), "targetPath": p},
        _holds("a/new.txt"),
    ),
    "restore_file where it was": Reach(
        "restore_file", "trashedPath", "write", "new.txt", _original, _holds("new.txt")
    ),
    "move_file from": Reach(
        "move_file",
        "fromPath",
        "write",
        "file.txt",
        lambda _s, t, p: {"fromPath": p, "toPath": "moved.txt", "expectedSha256": t.sha256},
        _gone("file.txt"),
    ),
    "move_file to": Reach(
        "move_file",
        "toPath",
        "write",
        "new.txt",
        lambda _s, _t, p: {"fromPath": "mine.txt", "toPath": p, "expectedSha256": MINE},
        lambda tree, _output: tree.holds("new.txt", "mine"),
    ),
    "move_file over": Reach(
        "move_file",
        "toPath",
        "write",
        "file.txt",
        lambda _s, _t, p: {
            "fromPath": "mine.txt",
            "toPath": p,
            "expectedSha256": MINE,
            "overwrite": True,
        },
        lambda tree, _output: tree.holds("file.txt", "mine"),
        variant=True,
    ),
    "run_command": Reach(
        "run_command",
        "cwd",
        "write",
        "",
        lambda _s, _t, p: {"command": "cat file.txt; echo new > made.txt", "cwd": p},
        lambda tree, output: tree.text in output and tree.holds("made.txt", "new"),
    ),
    "launch_strategy": Reach(
        "launch_strategy",
        "name",
        "read",
        "plan.json",
        lambda _s, _t, p: {"name": p, "input": "go"},
        _says(),
    ),
}

OTHER_ARGUMENTS: dict[str, frozenset[str]] = {
    # Its places are in the text; tests/runs/tools/test_patch.py asks for each of them.
    "apply_patch": frozenset({"patch"}),
    "read_file": frozenset(("startLine", "endLine", "maxBytes", "allowBinary")),
    "list_directory": frozenset(("recursive", "maxDepth", "includeHidden")),
    "search_files": frozenset(
        ("query", "mode", "includeGlobs", "excludeGlobs", "maxResults", "contextLines")
    ),
    "glob": frozenset(("pattern", "excludeGlobs", "maxResults")),
    "create_file": frozenset(("content", "createParentDirectories")),
    "write_file": frozenset(("content", "expectedSha256")),
    "edit_file": frozenset(("edits", "expectedSha256")),
    "delete_file": frozenset(("expectedSha256", "permanent")),
    "restore_file": frozenset(),
    "move_file": frozenset(("expectedSha256", "overwrite")),
    "run_command": frozenset(("command", "timeoutMs", "env", "network", "sandbox", "reason")),
    "webfetch": frozenset(("url", "format", "timeout")),
    "list_skills": frozenset(),
    "load_skill": frozenset(("name",)),
    "list_strategy": frozenset(),
    "launch_strategy": frozenset(("input", "modelOverride")),
    "todo_add": frozenset(("content",)),
    "todo_complete": frozenset(("id",)),
    "todo_get": frozenset(),
    "todo_get_next": frozenset(),
    "todo_remove": frozenset(("id",)),
    "todo_clear": frozenset(),
    "ask_question": frozenset(("question",)),
    "lsp_request": frozenset(("method", "path", "line", "character", "query", "languageId")),
    "string": frozenset(("command", "topic")),
    "request_privileged": frozenset(("pipeline", "reason", "privileged")),
}
"""What else tools take: arguments that name no place of their own.

The path of `lsp_request` leads nowhere, since no language service is ever present.
"""


def linked(scene: Scene, name: str, target: Path | str) -> str:
    link = scene.work / name
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return name


def _chained(scene: Scene, _tree: Tree, place: Path) -> str:
    linked(scene, "third", place)
    linked(scene, "second", "third")
    return linked(scene, "first", "./second")


def _relative(scene: Scene, place: Path) -> str:
    return os.path.relpath(place, scene.work)


SPELLINGS: dict[str, Callable[[Scene, Tree, Path], str]] = {
    "absolute": lambda _s, _t, place: str(place),
    "dots": lambda s, _t, place: _relative(s, place),
    "detour": lambda s, _t, place: f"nowhere/.././/{_relative(s, place)}",
    "link": lambda s, _t, place: linked(s, "leaf", place),
    "relative link": lambda s, _t, place: linked(s, "leaf", _relative(s, place)),
    "chain": _chained,
    "folder link": lambda s, _t, place: f"{linked(s, 'folder', place.parent)}/{place.name}",
    "dots after a link": lambda s, t, place: (
        f"{linked(s, 'down', t.root / 'deep')}/../{place.relative_to(t.root).as_posix()}"
    ),
    "through proc": lambda _s, _t, place: f"/proc/self/root{place}",
}
"""How a path can be written that leads to a place in a tree."""

HARDEST = ("chain", "dots after a link")
