"""Real attempts to change or read what is outside; afterwards nothing outside has changed."""

from pathlib import Path

import pytest

from stringd.system.sandbox import Landlock, Level
from tests.system.sandbox.cage import SECRET, Cage, snapshot

CHANGES = {
    "write over a file": 'echo x > "$OUT/file"',
    "append to a file": 'echo x >> "$OUT/file"',
    "make a file": 'echo x > "$OUT/new"',
    "make a folder": 'mkdir "$OUT/new"',
    "make a link": 'ln -s x "$OUT/new"',
    "make a pipe": 'mkfifo "$OUT/new"',
    "make a device": 'mknod "$OUT/new" c 1 3',
    "delete a file": 'rm -f "$OUT/file"',
    "delete a tree": 'rm -rf "$OUT" "$HOME"',
    "delete with find": 'find "$BASE" -type f -delete',
    "rename a file": 'mv "$OUT/file" "$OUT/other"',
    "move a file in": 'mv "$OUT/file" "$WS/"',
    "move a file out": 'mv "$WS/mine" "$OUT/"',
    "move a folder in": 'mv "$OUT/folder" "$WS/"',
    "swap two files": "\"$PY\" -c \"import os; os.rename('$WS/mine', '$OUT/file')\"",
    "hard link in, then write": 'ln "$OUT/file" "$WS/hard" && echo x >> "$WS/hard"',
    "hard link out": 'ln "$WS/mine" "$OUT/hard"',
    "write through a link": 'echo x > "$WS/to-outside/file"',
    "write through a new link": 'ln -s "$OUT" "$WS/l"; echo x > "$WS/l/file"',
    "write through the process's root": 'echo x > "/proc/self/root$OUT/file"',
    "write through the first process's root": 'echo x > "/proc/1/root$OUT/file"',
    "write through the parent's root": 'echo x > "/proc/$PPID/root$OUT/file"',
    "write through the working directory": "echo x > /proc/self/cwd/../notes.txt",
    "write through a reader's descriptor": 'exec 3<"$OUT/file"; echo x > /proc/self/fd/3',
    "climb out": "echo x > ../notes.txt; rm -f ../../outside/file",
    "cut short": 'truncate -s 0 "$OUT/file"',
    "cut short by a call": '"$PY" -c "import os; os.truncate(\'$OUT/file\', 0)"',
    "cut short when opened for reading": (
        '"$PY" -c "import os; os.open(\'$OUT/file\', os.O_RDONLY | os.O_TRUNC)"'
    ),
    "edit in place": 'sed -i s/was/x/ "$OUT/file"',
    "copy over": 'cp "$WS/mine" "$OUT/file"; dd if=/dev/zero of="$OUT/file" count=1',
    "start-up files of the shell": 'echo x >> "$HOME/.bashrc"; echo x > "$HOME/.profile"',
    "git's settings": "git config --global core.pager x",
    "mount over": 'mount --bind "$WS" "$OUT"; mount -o remount,rw / ; mount -o remount,rw "$OUT"',
    "new namespaces": 'unshare -Urm sh -c "mount -o remount,rw /; echo x > $OUT/file"',
    "the first process's namespaces": 'nsenter -t 1 -m sh -c "echo x > $OUT/file"',
    "another root": 'chroot / sh -c "echo x > $OUT/file"',
    "replace the workspace": 'cd /; rm -rf "$WS"; ln -s "$OUT" "$WS"',
    "rename the workspace": 'cd /; mv "$WS" "$HOME/elsewhere"',
}
METADATA = {
    "permissions": 'chmod 777 "$OUT/file" "$OUT"',
    "times": 'touch "$OUT/file" "$OUT/folder"',
    "owner": 'chown 12345 "$OUT/file"',
    "attributes": "\"$PY\" -c \"import os; os.setxattr('$OUT/file', 'user.x', b'x')\"",
}
READS = {
    "by its path": 'cat "$HOME/.ssh/id_ed25519"',
    "a file of its own": 'cat "$HOME/.netrc"',
    "a file that a pattern names": 'cat "$HOME/.claude.json"',
    "deeper inside": 'cat "$HOME/.config/gh/hosts.yml"',
    "through a link beside": 'cat "$BASE/alias/id_ed25519"',
    "through a link in the workspace": 'cat "$WS/to-ssh/id_ed25519"',
    "through a link to home": 'cat "$BASE/second-home/.ssh/id_ed25519"',
    "through a new link": 'ln -s "$HOME/.ssh" l; cat l/id_ed25519',
    "through a new hard link": 'ln "$HOME/.netrc" l; cat l',
    "through the first process's root": 'cat "/proc/1/root$HOME/.ssh/id_ed25519"',
    "through the parent's root": 'cat "/proc/$PPID/root$HOME/.ssh/id_ed25519"',
    "through any process's root": 'cat /proc/[0-9]*/root"$HOME"/.ssh/id_ed25519',
    "through any process's directory": "cat /proc/[0-9]*/cwd/../.netrc",
    "with a copy": 'cp -r "$HOME/.ssh" "$HOME/.netrc" .',
    "with a search": 'grep -rs CANARY "$HOME" "$BASE/alias/" ',
    "with a mount": 'mkdir m; mount --bind "$HOME/.ssh" m; cat m/*',
    "without a mount": 'umount "$HOME/.ssh"; umount -l "$HOME/.netrc"; cat "$HOME"/.ssh/*',
    "in new namespaces": 'unshare -Urm sh -c "umount -l $HOME/.ssh; cat $HOME/.ssh/*"',
    "after moving it": 'mv "$HOME/.ssh" k; cat k/*',
    "after moving what is around it": 'mv "$HOME/.config" k; cat k/gh/*',
    "after opening it up": 'chmod -R 777 "$HOME/.ssh"; cat "$HOME"/.ssh/*',
    "from the first process's namespaces": 'nsenter -t 1 -m cat "$HOME/.netrc"',
}


@pytest.mark.parametrize("script", CHANGES.values(), ids=CHANGES)
def test_nothing_outside_the_workspace_changes(caged: Cage, script: str) -> None:
    before = snapshot(caged)
    caged.run(f"{script}; true")
    assert snapshot(caged) == before


@pytest.mark.parametrize("script", METADATA.values(), ids=METADATA)
def test_permissions_and_times_outside_are_kept(caged: Cage, script: str) -> None:
    if isinstance(caged.walls, Landlock) and not caged.walls.freezes:
        pytest.skip("Landlock alone does not judge this; the manual says so")
    before = snapshot(caged)
    caged.run(f"{script}; true")
    assert snapshot(caged) == before


@pytest.mark.parametrize("script", READS.values(), ids=READS)
def test_hidden_secrets_cannot_be_read(caged: Cage, script: str) -> None:
    done = caged.run(f"{script} 2>&1; true")
    assert SECRET not in done.output
    copies = [path for path in caged.workspace.rglob("*") if path.is_file()]
    kept = [path for path in copies if not path.is_relative_to(caged.workspace / "to-ssh")]
    assert not [path for path in kept if SECRET in path.read_text("utf-8", "replace")]


def test_the_same_secret_can_be_read_without_walls(caged: Cage) -> None:
    open_spec = caged.spec(Level.OPEN)
    assert SECRET in caged.run(READS["by its path"], open_spec).output


def test_the_workspace_can_be_changed_in_every_way(caged: Cage) -> None:
    script = """
        set -e
        echo new > made; cat made; mkdir d; mv made d/; ln d/made hard; ln -s d/made soft
        mv d/made sub/; rm hard soft; rmdir d; mkfifo pipe; rm pipe; truncate -s 1 sub/made
        chmod 700 sub; cp /bin/true t; ./t; echo over > mine
    """
    assert caged.run(script) == (0, "new\n")
    assert (caged.workspace / "mine").read_text() == "over\n"
    assert (caged.workspace / "sub/made").read_text() == "n"


def test_the_rest_of_the_machine_can_be_read(caged: Cage) -> None:
    done = caged.run('cat "$HOME/notes.txt" "$OUT/file" && test -s /etc/passwd && cat /dev/null')
    assert done == (0, "as it was\nas it was\n")


def test_caches_can_be_written(caged: Cage) -> None:
    assert caged.run('echo kept > "$HOME/.cache/x"').code == 0
    assert (caged.home / ".cache/x").read_text() == "kept\n"


def test_a_read_only_sandbox_changes_nothing_and_has_a_temporary_directory(caged: Cage) -> None:
    before = _states(caged)
    script = 'echo x > mine; rm -rf sub; echo x > new; echo x > "$HOME/.cache/x"; cat mine; mktemp'
    done = caged.run(script, caged.spec(Level.READ_ONLY))
    assert done.code == 0
    assert "as it was" in done.output
    assert _states(caged) == before
    assert not (caged.home / ".cache/x").exists()


def _states(caged: Cage) -> dict[Path, tuple[int, int, int]]:
    found = {path: path.lstat() for path in caged.workspace.rglob("*")}
    return {path: (each.st_mode, each.st_size, each.st_mtime_ns) for path, each in found.items()}


def test_a_hidden_place_in_the_workspace_is_hidden_and_kept(caged: Cage) -> None:
    data = caged.workspace / "sub/data"
    data.mkdir()
    (data / "key").write_text(SECRET)
    spec = caged.spec(hidden=(*caged.spec().hidden, str(data)))
    assert SECRET not in caged.run("cat sub/data/key; rm -rf sub; mv sub elsewhere", spec).output
    assert (data / "key").read_text() == SECRET


def test_what_is_around_a_hidden_place_cannot_be_moved_from_under_it(caged: Cage) -> None:
    spec = caged.spec(workspace=(caged.home,))
    caged.run('mv "$HOME/.config" "$HOME/c"; mv "$HOME/.ssh" "$HOME/s"', spec)
    assert SECRET not in caged.run('cat "$HOME"/c/gh/* "$HOME"/s/*', spec).output
    assert (caged.home / ".config/gh/hosts.yml").read_text() == SECRET


def test_a_readable_place_in_the_workspace_is_not_written_to(caged: Cage) -> None:
    kept = caged.workspace / "sub/kept"
    kept.mkdir()
    (kept / "file").write_text("as it was\n")
    done = caged.run(
        "cat sub/kept/file; rm -rf sub/kept; echo x > sub/kept/file",
        caged.spec(readable=(kept,)),
    )
    assert "as it was" in done.output
    assert (kept / "file").read_text() == "as it was\n"


def test_temporary_files_are_private_and_gone_afterwards(caged: Cage) -> None:
    done = caged.run('path=$(mktemp) && echo x > "$path" && echo "$path"')
    assert done.code == 0
    assert not Path(done.output.strip()).exists()


def test_a_temporary_directory_can_be_kept_for_the_next_command(caged: Cage) -> None:
    kept = caged.workspace / "sub"
    spec = caged.spec(temporary=kept)
    assert caged.run('echo x > "${TMPDIR:-/tmp}/seen"', spec).code == 0
    assert caged.run('cat "${TMPDIR:-/tmp}/seen"', spec) == (0, "x\n")
    assert (kept / "seen").read_text() == "x\n"


def test_disks_cannot_be_opened(caged: Cage) -> None:
    disks = "/dev/[hsv]d* /dev/nvme* /dev/mem /dev/kmsg"
    assert "READ" not in caged.run(f"for d in {disks}; do head -c1 $d && echo READ; done").output
