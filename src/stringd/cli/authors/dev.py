"""`stringd dev`: an app as its readers see it, and what is wrong with it, while it is written."""

import argparse
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from stringd.cli.quoting import quote
from stringd.cli.runs.common import add_port, daemon_port, ensure_daemon, fail
from stringd.cli.sfmd import problems_of
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.client.errors import StringClientError
from stringd.client.string import String

LOOK_SECONDS: Final = 0.3
"""How often files are looked at; asking the file system works everywhere."""
MAX_FILES: Final = 5000
MAIN_FILE: Final = "string.md"

Snapshot = dict[Path, tuple[int, int, int]]


class AppUnderWork:
    """The folder of an app, or one page, and the topic that shows it."""

    def __init__(self, path: Path) -> None:
        given = path.resolve()
        self.main = given / MAIN_FILE if given.is_dir() else given
        self.folder = self.main.parent
        self.alone = self.main.name != MAIN_FILE
        stem = self.main.stem if self.alone else self.folder.name
        self.topic = f"file:dev-{''.join(c if c.isalnum() else '-' for c in stem)}"

    def snapshot(self) -> Snapshot:
        """What changes when a visible file of the app does."""
        found: Snapshot = {}
        for path in self._files():
            try:
                status = path.stat()
            except OSError:
                # It went away meanwhile; the next look is without it.
                continue
            found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return found

    def problems(self) -> list[str]:
        """What an author should repair, a line each."""
        try:
            found = problems_of(self.main if self.alone else self.folder)
        except UnicodeDecodeError:
            return ["a document is UTF-8 text, and one of these files is not"]
        except OSError as error:
            return [f"{error.filename}: {error.strerror}"]
        return [each.removeprefix(f"{self.folder}/") for each in found]

    def _files(self) -> Iterator[Path]:
        if self.alone:
            yield self.main
            return
        for count, path in enumerate(sorted(self.folder.rglob("*"))):
            if count >= MAX_FILES:
                return
            if not any(part.startswith(".") for part in path.relative_to(self.folder).parts):
                yield path


def main(name: str, argv: Sequence[str]) -> int:
    """Show an app again whenever a file of it changes, until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Check an app and show its page as readers see it, again after every change. "
        "Ctrl-C ends it.",
    )
    parser.add_argument("path", type=Path, nargs="?", default=Path(), help="folder or page (.)")
    parser.add_argument(
        "--install", action="store_true", help="install it too whenever nothing is wrong"
    )
    parser.add_argument(
        "--once", action="store_true", help="look once; status 1 if anything is wrong"
    )
    add_port(parser)
    args = parser.parse_args(argv)
    app = AppUnderWork(args.path)
    if not app.main.is_file():
        return fail(f"no {app.main.name} in {app.folder}; stringd new app NAME makes one")
    # Whoever ends it with a signal gets the same end as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        port = daemon_port(args)
        ensure_daemon(port)
        with String(port=port, cwd=app.folder) as client:
            try:
                return _once(client, app, args.install) if args.once else _watch(client, app, args)
            finally:
                client.close_topic(app.topic)
    except (UsageError, StringClientError) as error:
        return fail(error)
    except KeyboardInterrupt:
        print("\nstringd dev: ended")
        return 0


def _watch(client: String, app: AppUnderWork, args: argparse.Namespace) -> int:
    before = app.snapshot()
    _show(client, app, install=args.install)
    hint = "" if args.install else _trust_hint(app)
    print(visible(f"Watching {app.main if app.alone else app.folder}; Ctrl-C ends it.{hint}"))
    while True:
        sys.stdout.flush()
        time.sleep(LOOK_SECONDS)
        now = app.snapshot()
        if now == before:
            continue
        changed = sorted(path for path in {*now, *before} if now.get(path) != before.get(path))
        names = ", ".join(str(path.relative_to(app.folder)) for path in changed[:5])
        more = f", +{len(changed) - 5} more" if len(changed) > 5 else ""
        print(visible(f"\n{time.strftime('%H:%M:%S')} changed: {names}{more}"))
        before = now
        _show(client, app, install=args.install)


def _once(client: String, app: AppUnderWork, install: bool) -> int:
    return 0 if _show(client, app, install=install) else 1


def _show(client: String, app: AppUnderWork, *, install: bool) -> bool:
    """Print what is wrong and the page; whether all is well."""
    problems = app.problems()
    for problem in problems:
        print(visible(f"problem: {problem}"))
    page = client.exec(app.topic, f"/open {quote(f'./{app.main.name}')}")
    print(visible(page.content))
    if not problems and page.ok and install:
        done = client.exec(app.topic, f"/install {quote(str(app.main))}")
        print(visible(f"---\n{done.content}"))
        return done.ok
    if not problems:
        print("---\nNothing is wrong with it.")
    else:
        print(f"---\n{len(problems)} problem{'s' if len(problems) > 1 else ''}, listed above.")
    return page.ok and not problems


def _trust_hint(app: AppUnderWork) -> str:
    trust = f"stringd trust {shlex.quote(str(app.main))}"
    return (
        f"\nTo try its actions: string {app.topic} '/act.<name> …'"
        f"\nOutside your String home commands run after {trust}; with --install they run in "
        "the app's own topic."
    )
