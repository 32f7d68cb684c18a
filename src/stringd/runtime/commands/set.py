"""`/set`: session `{variables}` and persistent `$VARIABLES`."""

from stringd.runtime.topics.call import Call
from stringd.runtime.variables import scopes
from stringd.runtime.variables.assignments import Assignment, parse_assignments
from stringd.wire.result import Result


def set_(call: Call) -> Result:
    """List the variables of this topic, or assign some; all or none are applied."""
    if not call.argument.strip() and not (call.body or "").strip():
        return _listing(call)
    assignments = parse_assignments(call.argument, call.body)
    kept = {item.name: item.value for item in assignments if item.persistent}
    scope = None
    if kept:
        session = call.session
        use_keyring = call.services.settings.use_keyring
        place = scopes.store(session.user.home, session.topic, kept, use_keyring=use_keyring)
        scope = place.name
    call.session.variables.update(
        (item.name, item.value) for item in assignments if not item.persistent
    )
    return Result.done("\n".join(_echo(call, item, scope) for item in assignments))


def _listing(call: Call) -> Result:
    session = call.session
    show = call.services.settings.show_secrets
    rows = [f'{{{name}}} = "{value}"' for name, value in session.variables.items()]
    rows += [
        f'${name} = "{scopes.masked(value, show=show)}"'
        for name, value in scopes.visible(session.user.home, session.topic).items()
    ]
    return Result.page("Variables", "\n".join(rows)) if rows else Result.done("No variables set.")


def _echo(call: Call, item: Assignment, scope: str | None) -> str:
    name = f"${item.name}" if item.persistent else f"{{{item.name}}}"
    lines = item.value.count("\n") + 1
    if item.fenced and lines > 1:
        return f"{name} = ({lines} lines)"
    if not item.persistent:
        return f'{name} = "{item.value}"'
    shown = scopes.masked(item.value, show=call.services.settings.show_secrets)
    return f'{name} = "{shown}"' if item.fenced else f'{name} = "{shown}" ({scope})'
