"""`/find <words> --apps`: the installed apps and mounted servers that the words mean."""

from typing import Final

from stringd.actions.schema import signature
from stringd.documents import Document, parse
from stringd.runtime.editing.paths import locate
from stringd.runtime.editing.text_file import read_text
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.action_lines import (
    described,
    first_words,
    is_mounted,
    mounted_line,
)
from stringd.runtime.packages.installed import KINDS, installed
from stringd.runtime.packages.ranking import ActionSummary, AppSummary, RankedApp, ranked
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import is_web, path_of
from stringd.wire.result import Result

_ROWS: Final = 20
_BRIEF_ROWS: Final = 5
_ACTIONS: Final = 12
_BRIEF_ACTIONS: Final = 5
_SIGNATURES: Final = 3
_ABOUT: Final = 160
_BRIEF_ABOUT: Final = 60


def find_apps(call: Call, wanted: str) -> Result | None:
    """What is installed for the words, best first, a line each; None when nothing is.

    A brief answer ends with how the best app's fitting actions are called, so that a caller need
    not open it.
    """
    brief = call.caller.brief
    documents = _documents(call)
    found = ranked([_summary(label, each) for label, each in documents.items()], wanted)
    if not found:
        return None
    rows = _BRIEF_ROWS if brief else _ROWS
    lines = [_row(each, brief=brief) for each in found[:rows]]
    if brief:
        lines += _calls(found[0], documents[found[0].app.label])
    if len(found) > rows:
        lines.append(f"[{len(found) - rows} more left out: use rarer words, or /apps for all]")
    if brief:
        return Result.page("", "\n".join(lines))
    noun = "app" if len(found) == 1 else "apps"
    return Result.page(f"Found {len(found)} {noun} for “{wanted}”", "\n".join(lines))


def _documents(call: Call) -> dict[str, Document]:
    """Label → main document; of one that cannot be read here only the name is known."""
    return {
        f"{kind}:{name}": _document(call, uri)
        for kind in KINDS
        for name, uri in sorted(installed(call.session.user.home, kind).items())
    }


def _document(call: Call, uri: str) -> Document:
    try:
        # The list of what is installed is a file of the home: its paths are checked like others.
        text = "" if is_web(uri) else read_text(locate(call, str(path_of(uri) or uri))).text
    except CommandError:
        text = ""
    return parse(text)


def _summary(label: str, document: Document) -> AppSummary:
    about = described(document) if is_mounted(document) else {}
    actions = (ActionSummary(ident, about.get(ident, "")) for ident in document.actions)
    return AppSummary(label, _about(document), tuple(actions))


def _about(document: Document) -> str:
    """What a package says it is: its description, else its heading and the line a server says."""
    stated = document.frontmatter.get("description")
    if isinstance(stated, str) and stated.strip():
        return " ".join(stated.split())
    body = (line.strip() for line in document.source[document.body_start :].splitlines())
    text = [line for line in body if line]
    heading = text[0].lstrip("# ") if text and text[0].startswith("# ") else ""
    first = next((line.lstrip("> ") for line in text[1:2] if line.startswith("> ")), "")
    return ": ".join(filter(None, (heading, first)))


def _row(found: RankedApp, *, brief: bool) -> str:
    app, names = found.app, [each.id for each in found.actions]
    shown = names[: _BRIEF_ACTIONS if brief else _ACTIONS]
    more = f" +{len(names) - len(shown)}" if len(names) > len(shown) else ""
    about = first_words(app.about, _BRIEF_ABOUT if brief else _ABOUT)
    return "  ".join(filter(None, (app.label, about, ", ".join(shown) + more)))


def _calls(found: RankedApp, document: Document) -> list[str]:
    """How the actions are called that the words mean."""
    prefix = f"{found.app.name}."
    if not found.app.label.startswith("app:"):
        return []
    meant = found.actions[: min(found.meant, _SIGNATURES)]
    if is_mounted(document):
        return [mounted_line(document.actions[each.id], prefix, each.about) for each in meant]
    return [signature(document.actions[each.id], prefix) for each in meant]
