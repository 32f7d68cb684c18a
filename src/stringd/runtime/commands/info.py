"""`/info`: where a topic stands."""

from stringd.runtime.commands.call import Call
from stringd.runtime.paths import display_directory
from stringd.wire.result import Result


def info(call: Call) -> Result:
    """Key-value lines about the topic and its open document."""
    session = call.session
    where = display_directory(session.user.home, session.directory)
    text = f"cwd:       {where}\nfile:      (none open)\nhistory:   0 entries"
    if session.variables:
        shown = ", ".join(f'{{{name}}}="{value}"' for name, value in session.variables.items())
        text = f"{text}\nvars:      {shown}"
    return Result.page("Session info", text)
