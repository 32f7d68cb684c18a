"""The welcome workspace of `stringd serve --welcome`."""

from pathlib import Path
from typing import Final

from stringd.client.daemon import default_home, setting
from stringd.server.app import App
from stringd.server.settings import DaemonSettings
from stringd.system.files import make_private_directory

_PAGE: Final = """---
title: Welcome
---

# Welcome to stringd

This page is `welcome.md` in your home. Agents read it, follow its links and edit it by typing
commands; you can type the same ones.

<!-- #first-steps -->
## First steps

1. `/info` shows the state of this topic.
2. `/open welcome.md#first-steps` shows only this block.
3. `/edit welcome.md#notes` shows the source of the block below; with a body it replaces it.
<!-- /first-steps -->

<!-- #notes -->
## Notes

Nothing yet.
<!-- /notes -->
"""


def prepare(app: App, settings: DaemonSettings) -> str:
    """Register the default user with a home that holds a first page; return what to try next."""
    user_id = setting("USER")[1] or "default"
    known = app.runtime.topics.users.get(user_id)
    home = Path(known.home if known else default_home(user_id))
    make_private_directory(home)
    app.runtime.topics.register(user_id, str(home))
    page = home / "welcome.md"
    if not page.exists():
        page.write_text(_PAGE, encoding="utf-8")
    port = "" if settings.port == 3100 else f"STRINGD_PORT={settings.port} "
    string = f"{port}{_program()}"
    return (
        f"Home of user {user_id}: {home}\n"
        f"What agents do, and what waits for you: http://127.0.0.1:{settings.port}/ui/\n\n"
        "Try, in another terminal:\n"
        f"  {string} file:main /info\n"
        f"  {string} file:main '/open welcome.md'\n"
        f"  {string} file:main\n"
        f"  curl http://127.0.0.1:{settings.port}/health\n"
        f"and in a browser: http://127.0.0.1:{settings.port}/\n\n"
        "Ctrl-C stops the daemon."
    )


def _program() -> str:
    """`string`, or its path inside the project when only that would be found."""
    return ".venv/bin/string" if Path(".venv/bin/string").exists() else "string"
