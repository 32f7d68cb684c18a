"""`stringd new`: an app that works, to change into one's own."""

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from stringd.cli.streams import visible

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PAGE: Final = """\
---
name: {name}
type: app
version: 0.1.0
description: Says hello.
---
# {title}

Greets whom you name: `/act.hello Ada`.

```act.hello
CLI printf 'Hello, %s!' {{name}}
  name, -n: string (required) "Whom to greet"
```
"""
_README: Final = """\
# {title}

A String app: `string.md` is what agents open, and its actions are what they can do.

```
stringd dev {folder}                       # check it and show it, again after every change
string '/install ./{folder}'               # make it an app of yours
string app:{name} '/act.hello Ada'
string '/update {name}'                    # after a change, bring what is installed up to date
```

How actions, fields and answers are written is in the manual of stringd, `docs/apps.md`.
"""


def main(name: str, argv: Sequence[str]) -> int:
    """Write the files of a new app."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}", description="Write an app that works, to change into your own."
    )
    parser.add_argument("kind", choices=["app"], help="what to make")
    parser.add_argument("name", help="its name, and that of its folder")
    parser.add_argument("--in", dest="place", type=Path, default=Path(), metavar="DIR")
    args = parser.parse_args(argv)
    if not _NAME.fullmatch(args.name):
        return _fail(f"a name has letters, digits, - and _: {args.name}")
    folder: Path = args.place / args.name
    title = args.name.replace("-", " ").replace("_", " ").strip().capitalize()
    texts = {"string.md": _PAGE, "README.md": _README}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = next(folder.iterdir(), None)
        if taken is not None:
            return _fail(f"{folder} is not empty; choose another name")
        for file, text in texts.items():
            filled = text.format(name=args.name, title=title, folder=args.name)
            (folder / file).write_text(filled, encoding="utf-8")
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}")
    shown = shlex.quote(str(folder))
    print(visible(f"Made {folder}: {', '.join(texts)}"))
    print(visible(f"Next: stringd dev {shown}"))
    print(visible(f"      string '/install ./{folder}'  and  string app:{args.name} /open"))
    return 0


def _fail(reason: str) -> int:
    print(visible(f"stringd new: {reason}"), file=sys.stderr)
    return 1
