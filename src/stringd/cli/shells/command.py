"""`stringd completions` and `stringd man`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

_PLACES = """\
where shells look:
  bash   stringd completions bash > ~/.local/share/bash-completion/completions/stringd
         (for string and st too: ln -s stringd string and ln -s stringd st beside it)
  zsh    stringd completions zsh > ~/.zfunc/_stringd, with fpath+=~/.zfunc before compinit
  fish   stringd completions fish > ~/.config/fish/completions/stringd.fish
"""


def main(name: str, argv: Sequence[str]) -> int:
    """Print completions for a shell, or write the manual pages."""
    args = _parser(name).parse_args(argv)
    from stringd.cli.main import SUBCOMMANDS, overview
    from stringd.cli.shells.help_text import pages, string_page

    every = pages(SUBCOMMANDS)
    if name == "completions":
        from stringd.cli.shells.scripts import SHELLS

        print(SHELLS[args.shell](every, string_page()), end="")
        return 0
    from stringd.cli.shells.manual import manual

    directory = Path(args.directory).expanduser()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        made = manual(every, string_page(), overview())
        for file, text in made.items():
            (directory / file).write_text(text, "utf-8")
    except OSError as error:
        print(f"stringd: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1
    print(f"{len(made)} pages in {directory}. To read one: man {directory / 'stringd.1'}")
    return 0


def _parser(name: str) -> argparse.ArgumentParser:
    if name == "man":
        parser = argparse.ArgumentParser(
            prog="stringd man",
            description="Write the manual pages, which say what --help says.",
        )
        usual = "~/.local/share/man/man1"
        parser.add_argument("directory", nargs="?", default=usual, help=f"where to ({usual})")
        return parser
    parser = argparse.ArgumentParser(
        prog="stringd completions",
        description="Print what a shell needs to complete stringd, string and st.",
        epilog=_PLACES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser
