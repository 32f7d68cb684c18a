"""`/set`: session `{variables}` and persistent `$VARIABLES`."""

from collections.abc import Awaitable
from typing import NamedTuple

from stringd.actions.secrets import is_secret, masked
from stringd.runtime.topics.call import Call
from stringd.runtime.variables import scopes
from stringd.runtime.variables.assignments import Assignment, parse_assignments
from stringd.wire.result import Result


def set_(call: Call) -> Result | Awaitable[Result]:
    """List the variables of this topic, show one, or assign some; all or none are applied."""
    if not call.argument.strip() and not (call.body or "").strip():
        return _listing(call)
    asked = call.argument.strip()
    if not call.body and asked.startswith(("$", "{")) and "=" not in asked:
        known = [each for each in shown_variables(call) if each.name == asked]
        if known:
            return Result.done(_row(known[0]))
    assignments = parse_assignments(call.argument, call.body)
    names = [item.name for item in assignments if item.persistent]
    if names and call.caller.permission is not None:
        return _assign_if_permitted(call, assignments, names)
    return _assign(call, assignments)


async def _assign_if_permitted(
    call: Call, assignments: list[Assignment], names: list[str]
) -> Result:
    """Where requests go may depend on a stored variable, so an agent of a run is asked."""
    assert call.caller.permission is not None
    await call.caller.permission.change(f"/set {', '.join(f'${name}' for name in names)}")
    return _assign(call, assignments)


def _assign(call: Call, assignments: list[Assignment]) -> Result:
    kept = {item.name: item.value for item in assignments if item.persistent}
    scope = None
    if kept:
        session = call.session
        use_keyring = call.services.settings.use_keyring
        place = scopes.store(session.user.home, session.topic, kept, use_keyring=use_keyring)
        scope = place.name
    for item in assignments:
        if not item.persistent:
            call.session.assign(item.name, item.value)
    return Result.done("\n".join(_echo(call, item, scope) for item in assignments))


class ShownVariable(NamedTuple):
    """A variable as replies show it; `name` is `{name}` or `$NAME`."""

    name: str
    value: str
    masked: bool = False


def shown_variables(call: Call) -> list[ShownVariable]:
    """Every variable of a topic, of secrets only the beginning. Raises `CommandError`."""
    session = call.session
    found = [ShownVariable(f"{{{name}}}", value) for name, value in session.variables.items()]
    for name, value in scopes.visible(session.user.home, session.topic).items():
        shown = _shown(call, name, value)
        found.append(ShownVariable(f"${name}", shown, shown != value))
    return found


def _listing(call: Call) -> Result:
    rows = [_row(each) for each in shown_variables(call)]
    return Result.page("Variables", "\n".join(rows)) if rows else Result.done("No variables set.")


def _row(variable: ShownVariable) -> str:
    return f'{variable.name} = "{variable.value}"'


def _echo(call: Call, item: Assignment, scope: str | None) -> str:
    name = f"${item.name}" if item.persistent else f"{{{item.name}}}"
    lines = item.value.count("\n") + 1
    if item.fenced and lines > 1:
        return f"{name} = ({lines} lines)"
    if not item.persistent:
        return f'{name} = "{item.value}"'
    shown = _shown(call, item.name, item.value)
    return f'{name} = "{shown}"' if item.fenced else f'{name} = "{shown}" ({scope})'


def _shown(call: Call, name: str, value: str) -> str:
    """A persistent value as replies show it: settings in full, of secrets the beginning."""
    if call.services.settings.show_secrets:
        return value
    location = call.session.location
    actions = location.page.document.actions.values() if location and location.page else ()
    # What an action of the open page sends in a header is a secret, whatever it is called.
    headers = (text for action in actions for _, text in action.headers)
    secret = is_secret(name, value) or any(f"${name}" in text for text in headers)
    return masked(value) if secret else value
