"""`/info`: where a topic stands."""

from stringd.runtime.commands.call import Call
from stringd.runtime.paths import display, standing_directory
from stringd.wire.result import Result


def info(call: Call) -> Result:
    """Key-value lines about the topic and its open document."""
    session = call.session
    rows = [("cwd", _directory(call)), ("file", "(none open)"), ("history", "0 entries")]
    if session.variables:
        rows.append(("vars", ", ".join(f'{{{k}}}="{v}"' for k, v in session.variables.items())))
    return Result.page("Session info", "\n".join(f"{key + ':':<11}{value}" for key, value in rows))


def _directory(call: Call) -> str:
    home = call.session.user.home
    shown = display(home, standing_directory(call))
    if shown == ".":
        return "~/"
    return f"{shown}/" if shown.startswith("/") else f"~/{shown}/"
