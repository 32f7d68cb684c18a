"""`stringd sfmd`: help for authors of documents, without a daemon."""

import argparse
import errno
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from stringd.actions.authoring import action_diagnostics
from stringd.cli.streams import visible
from stringd.documents import Document, Include, find_block, inline_sources, parse, parse_menu
from stringd.documents.authoring import author_diagnostics, source_names, with_includes
from stringd.system.files import write_atomically


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd sfmd`."""
    args = _parser(name).parse_args(argv)
    try:
        match args.command:
            case "compile":
                return _compile(args.directory, args.base)
            case "validate":
                return _validate(args.path, as_json=args.json)
            case "extract":
                return _extract(args.file, args.block.removeprefix("#"))
            case "fix":
                return _fix(args.directory)
            case _:
                return _clean(args.directory)
    except UnicodeDecodeError:
        print("stringd sfmd: a document is UTF-8 text, and this file is not", file=sys.stderr)
    except OSError as error:
        print(visible(f"stringd sfmd: {error.filename}: {error.strerror}"), file=sys.stderr)
    return 1


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}", description="Check, take apart and put together SFMD documents."
    )
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    compiling = commands.add_parser("compile", help="write a document's source files into it")
    compiling.add_argument("directory", type=Path)
    compiling.add_argument("base", help="name of the document, without .md")
    validating = commands.add_parser("validate", help="say what is wrong; status 1 if anything is")
    validating.add_argument("path", type=Path, metavar="file-or-directory")
    validating.add_argument("--json", action="store_true", help="as a JSON list, for scripts")
    extracting = commands.add_parser("extract", help="print one block of a document")
    extracting.add_argument("file", type=Path)
    extracting.add_argument("block", metavar="#block")
    for command, summary in (
        ("fix", "include the source files that no document names"),
        ("clean", "delete the source files that no document names"),
    ):
        commands.add_parser(command, help=summary).add_argument("directory", type=Path)
    return parser


def _compile(directory: Path, base: str) -> int:
    path = directory / f"{base.removesuffix('.md')}.md"
    document = parse(_read(path))
    sources = _sources(path)

    def load(include: Include) -> str:
        part = directory / include.file if include.path else sources / f"{include.id}.md"
        if directory.resolve() not in part.resolve().parents:
            raise OSError(
                errno.EPERM, "an include must not leave the document's directory", str(part)
            )
        if not part.exists():
            part.parent.mkdir(exist_ok=True)
            part.touch()
            print(visible(f"[new] {part}"))
        return _read(part)

    for diagnostic in author_diagnostics(document):
        print(visible(f"[warn] {diagnostic}"))
    _write(path, inline_sources(document, load))
    print(visible(f"[ok] {path}"))
    return 0


def _validate(path: Path, *, as_json: bool) -> int:
    problems = problems_of(path)
    if as_json:
        print(json.dumps(problems, ensure_ascii=False))
        return int(bool(problems))
    for problem in problems:
        print(visible(problem))
    return int(bool(problems))


def problems_of(path: Path) -> list[str]:
    """What an author should repair in a file or a folder, a line each, with the file's name.

    Raises `OSError` and `UnicodeDecodeError`.
    """
    documents = _visible_files(path, "*.md") if path.is_dir() else [path]
    problems = [
        f"{document}: {problem}"
        for document in documents
        if document.is_file() or document == path
        for problem in _problems(document)
    ]
    if path.is_dir():
        problems += [f"{part}: not included by {document}" for document, part in _unnamed(path)]
    return problems


def _problems(path: Path) -> Iterator[str]:
    """What an author should repair in one file; menus on the web might define any shortcut."""
    document = parse(_read(path))
    yield from map(str, sorted((*author_diagnostics(document), *action_diagnostics(document))))
    yield from _missing_parts(path, document)
    files = {name: path.parent / file for name, file in document.menus.items()}
    local = {name: file for name, file in files.items() if "://" not in document.menus[name]}
    for name, file in local.items():
        if not file.is_file():
            yield f"MISSING_MENU: the menu {name} is not there: {document.menus[name]}"
    if len(local) == len(files):
        there = {name: file for name, file in local.items() if file.is_file()}
        menus = [parse_menu(name, _read(file), file.as_posix()) for name, file in there.items()]
        yield from document.warnings(menus)[len(document.diagnostics) :]


def _missing_parts(path: Path, document: Document) -> Iterator[str]:
    """Files that a document includes or links to, and that are not beside it."""
    includes = [(each.file, "MISSING_INCLUDE", "includes") for each in document.includes]
    inline = (link.target for link in document.links if link.target and not link.image)
    named = (*inline, *(each.target for each in document.definitions))
    pages = (target.partition("#")[0] for target in named)
    links = [(page, "MISSING_PAGE", "links to") for page in pages if page.endswith(".md")]
    for target, code, verb in dict.fromkeys((*includes, *links)):
        elsewhere = "://" in target or target.startswith(("/", "~", "@", "app:", "tool:"))
        if target and not elsewhere and not (path.parent / unquote(target)).is_file():
            yield f"{code}: it {verb} {target}, which is not there"


def _extract(path: Path, block: str) -> int:
    source = _read(path)
    span = find_block(source, block)
    if span is None:
        print(visible(f"!ERR EXTRACT BLOCK_NOT_FOUND {path}#{block}"), file=sys.stderr)
        return 1
    print(source[span.start : span.end].strip())
    return 0


def _fix(directory: Path) -> int:
    missing: dict[Path, list[str]] = {}
    for document, part in _unnamed(directory):
        missing.setdefault(document, []).append(part.stem)
    for document, names in missing.items():
        _write(document, with_includes(_read(document), names))
        print(visible(f"[ok] {document}: {', '.join(names)}"))
    return 0


def _clean(directory: Path) -> int:
    for _, part in [*_unnamed(directory)]:
        part.unlink()
        print(visible(f"[removed] {part}"))
    return 0


def _unnamed(directory: Path) -> Iterator[tuple[Path, Path]]:
    """Every document with each of its source files that it does not name."""
    for sources in _visible_files(directory, "*.md.source"):
        document = sources.with_suffix("")
        if document.is_file():
            named = source_names(parse(_read(document)))
            parts = (part for part in sorted(sources.glob("*.md")) if part.stem not in named)
            yield from ((document, part) for part in parts)


def _sources(path: Path) -> Path:
    usual, short = path.with_name(f"{path.name}.source"), path.with_suffix(".source")
    return short if short.is_dir() and not usual.is_dir() else usual


def _visible_files(directory: Path, pattern: str) -> list[Path]:
    """Sorted, without what is in hidden directories."""
    if not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(directory))
    found = sorted(directory.rglob(pattern))
    return [each for each in found if "/." not in f"/{each.relative_to(directory)}"]


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig")


def _write(path: Path, text: str) -> None:
    mark = BOM_UTF8 if path.read_bytes().startswith(BOM_UTF8) else b""
    write_atomically(path, mark + text.encode("utf-8"), path.stat().st_mode & 0o777)
