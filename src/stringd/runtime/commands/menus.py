"""`/nav`: the menus and shortcuts of a document."""

from collections.abc import Awaitable
from typing import Final

from stringd.documents import NO_LINKS, Menu, menu_line, nav_scaffold
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.load import absolute_target
from stringd.runtime.pages.show import current_page, open_app_page
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import Page
from stringd.wire.result import Result

_PREVIEWED: Final = 3


def nav(call: Call) -> Result | Awaitable[Result]:
    """List menus, show one, show the page's shortcuts, or draft a menu file."""
    session = call.session
    if session.location is not None:
        return _answer(call, current_page(call))
    if session.topic.type == "app":
        return _answer_in_app(call)
    raise CommandError(
        "INVALID_TARGET",
        "No document is open in this session. Open a document first, then run /nav again.",
    )


async def _answer_in_app(call: Call) -> Result:
    """An app topic is at its app even before `/open`; nothing runs."""
    return _answer(call, await open_app_page(call))


def _answer(call: Call, page: Page) -> Result:
    wanted = call.argument.strip()
    if not wanted:
        return Result.page("Menus", _menus(page))
    if wanted == "page":
        return Result.page("", _page_shortcuts(call, page))
    if wanted == "--resolve":
        return Result.page("Shortcuts", _resolved(call, page))
    if wanted in ("scaffold", "create", "bootstrap"):
        draft = nav_scaffold(page.document)
        return Result.page("", NO_LINKS) if draft is None else Result.page("Nav Scaffold", draft)
    menu = page.menus.get(wanted)
    if menu is None:
        raise CommandError("NOT_FOUND", f"Menu not found: {wanted}")
    lines = [menu_line(entry) for entry in menu.entries]
    return Result.page(f"Menu: {wanted}", "\n".join(lines) or f"Menu {wanted} is empty.")


def _menus(page: Page) -> str:
    if not page.menus:
        return (
            "This document has no menus.\n\n"
            "A menu is a Markdown file of [@id Label](target) lines that documents share.\n\n"
            "Try: /nav scaffold"
        )
    rows = [_row(menu) for menu in page.menus.values()]
    return "\n".join([*rows, "", "use: /nav <name> to show menu · /open @menu.id to follow link"])


def _row(menu: Menu) -> str:
    labels = ", ".join(entry.label for entry in menu.entries[:_PREVIEWED])
    more = len(menu.entries) - _PREVIEWED
    rest = f", ... ({more} more)" if more > 0 else ""
    return f"{menu.name} ({len(menu.entries)}): {labels}{rest}".rstrip()


def _page_shortcuts(call: Call, page: Page) -> str:
    sections = []
    own = [f"  @{each.id} → {each.target}" for each in page.document.shortcuts.values()]
    auto = [f"  @{name} → {target}" for name, target in call.session.auto_shortcuts.items()]
    if own:
        sections.append("\n".join(["Shortcuts:", *own]))
    if auto:
        sections.append("\n".join(["Auto:", *auto]))
    if not sections:
        return "No shortcuts on this page."
    return "\n\n".join([*sections, "use: /open @id"])


def _resolved(call: Call, page: Page) -> str:
    """Every name that can be followed from here, with where it leads."""
    written = [(each.id, each.target) for each in page.document.shortcuts.values()]
    written += call.session.auto_shortcuts.items()
    rows = [(name, absolute_target(target, page.uri)) for name, target in written]
    rows += [(entry.id, entry.target) for menu in page.menus.values() for entry in menu.entries]
    return "\n".join(f"@{name} → {target}" for name, target in rows) or "No shortcuts."
