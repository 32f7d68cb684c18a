"""`/act`: the actions of the open page."""

import asyncio

from stringd.actions.binding import needs_arguments, read_arguments
from stringd.actions.errors import ActionError
from stringd.actions.network import names_sent
from stringd.actions.provenance import ForeignFile, InstalledApp, WebPage, capabilities
from stringd.actions.run import ActionCaller, ActionText, DocumentAnswer, Help, Outcome, run_action
from stringd.actions.schema import listing, schema, signature
from stringd.documents import Action, render_text
from stringd.runtime.editing.text_file import LARGE_FILE_BYTES
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.mounts import tool_caller
from stringd.runtime.pages.action_context import ActionCall, place_of
from stringd.runtime.pages.action_page import page_of
from stringd.runtime.pages.provenance import confirmed
from stringd.runtime.pages.shortcuts import known_shortcuts
from stringd.runtime.pages.show import brief_actions, current_page, open_app_page, visited
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import Page
from stringd.runtime.topics.permission import command_permit, connection_judges
from stringd.wire.result import Result

_HELP = frozenset({"", "--help", "-h"})


async def act(call: Call) -> Result:
    """List the page's actions, or run one: `/act.<id> …`, `/act <id> …`."""
    page = await open_page(call)
    ident, arguments = _asked(call)
    if ident in _HELP:
        if call.caller.brief and ident == "" and page.document.actions:
            return Result.page("", "\n".join(brief_actions(page)))
        return _listing(page)
    action = find_action(page, ident)
    if action is None:
        raise _unknown(page, ident)
    typed = read_arguments(action, arguments)
    return await perform(call, ActionCall(page, action, typed, f"/act.{action.id}"))


def find_action(page: Page, ident: str) -> Action | None:
    """The action with this id; a different case is forgiven."""
    actions = page.document.actions
    if ident in actions:
        return actions[ident]
    folded = ident.casefold()
    return next((each for name, each in actions.items() if name.casefold() == folded), None)


async def perform(call: Call, asked: ActionCall) -> Result:
    """Run an action of a page and make the answer a reply. Raises `CommandError`."""
    outcome = await _outcome(call, asked)
    if isinstance(outcome, Help):
        form = f"{asked.label}\n{schema(asked.action)}"
        return Result.page(f"Action: {asked.action.id}", form)
    if isinstance(outcome, ActionText):
        return Result.page("", await _shown(call, outcome))
    document = await page_of(outcome)
    text = await visited(call, document, None)
    message = f"Opened {call.session.shown(document.uri)}"
    return Result.page(f"{message}\n{document.notice}" if document.notice else message, text)


def has_more_to_say(page: Page) -> bool:
    """Whether `with_default_action` may add to the reply that shows a page."""
    document = page.document
    return (
        document.default_action in document.actions
        or isinstance(page.provenance, InstalledApp)
        or (isinstance(page.provenance, ForeignFile) and page.provenance.reason is not None)
    )


async def with_default_action(call: Call, result: Result) -> Result:
    """A page's reply with its default action: what it answers, or how to call it.

    Only an installed app's runs. Of a page of the user's own the reply names it. A package that
    is not what was installed is not an app, and the reply says so.
    """
    page = current_page(call)
    if not has_more_to_say(page):
        return result
    provenance = await confirmed(call, page)
    if isinstance(provenance, ForeignFile) and provenance.reason is not None:
        return Result.page(f"{result.message}\n{provenance.reason}", result.content or "")
    document = page.document
    action = document.actions.get(document.default_action or "")
    if action is None:
        return result
    default = capabilities(provenance).default
    if default == "is named":
        message = f"{result.message}\ndefault: /act.{action.id}"
        return Result.page(message, result.content or "")
    output = await _run_default(call, page, action) if default == "runs" else None
    if output is None:
        return result
    return Result.page(result.message, f"{result.content}\n\n---\n\n{output}")


async def _run_default(call: Call, page: Page, action: Action) -> str | None:
    """What a page's default action answers; None when it cannot run or fails."""
    if needs_arguments(action):
        return None
    asked = ActionCall(page, action, read_arguments(action, ""), f"/act.{action.id}")
    try:
        outcome = await _outcome(call, asked)
    except CommandError:
        return None
    if isinstance(outcome, ActionText):
        return await _shown(call, outcome) or None
    if isinstance(outcome, DocumentAnswer):
        document = (await page_of(outcome)).document
        body = ActionText(document.source[document.body_start :], templated=True)
        return await _shown(call, body) or None
    return None


async def open_page(call: Call) -> Page:
    """The current page; an app topic loads its app without running anything."""
    session = call.session
    if session.location is not None:
        return current_page(call)
    if session.topic.type != "app":
        raise CommandError("INVALID_TARGET", "No document open. Use /open <uri> first.")
    return await open_app_page(call)


def argument_text(call: Call) -> str:
    """Everything after the command's name: a quoted value may go on in the lines below."""
    lines = [call.argument, call.body or ""]
    return "\n".join(line for line in lines if line).strip("\r\n")


def _asked(call: Call) -> tuple[str, str]:
    """The id and the argument text; the body belongs to the arguments."""
    text = argument_text(call)
    _, dot, ident = call.line.typed.partition(".")
    if dot:
        return ident, text
    if call.line.name not in ("act", "action"):
        return call.line.typed, text
    ident, *rest = text.split(None, 1) or [""]
    return ident, rest[0] if rest else ""


def _listing(page: Page) -> Result:
    actions = page.document.actions.values()
    return Result.page("Actions", listing(actions) or "No actions defined on this page.")


def _unknown(page: Page, ident: str) -> CommandError:
    names = ", ".join(page.document.actions)
    after = (
        "Use /act.<name> --help to inspect an action."
        if names
        else "No actions defined on current document."
    )
    return CommandError(
        "NOT_FOUND", f'Action not found: "{ident}"\nAvailable: {names or "none"}\n{after}'
    )


async def _outcome(call: Call, asked: ActionCall) -> Outcome:
    page = asked.page
    provenance = await confirmed(call, page)
    place, permission = place_of(call, asked, provenance), call.caller.permission
    # An app's values go to the hosts its owner installed it with; a page of the home may be the
    # agent's own.
    free = not isinstance(provenance, InstalledApp)
    names = names_sent(asked.action, place.names.stored) if free and permission else ()
    caller = ActionCaller(
        place,
        call.session.holding,
        tool_caller(call, provenance) if asked.action.method == "MCP" else None,
        command_permit(permission),
        connection_judges(permission, names),
        # A web page's actions go to its own origin only.
        call.session.cookies if isinstance(provenance, WebPage) else None,
    )
    try:
        return await run_action(call.services.engine, asked.action, asked.arguments, caller)
    except ActionError as error:
        helps = page.requirements is not None and error.setup
        setup = f"\n\nSetup info: /open {page.requirements}" if helps else ""
        message, usage, _ = error.message.partition("\n\nUsage:\n")
        if usage and call.caller.brief:
            message = f"{message}\n{signature(asked.action)}"
        else:
            message = error.message
        raise CommandError(error.code, f"{message}{setup}") from error


async def _shown(call: Call, answer: ActionText) -> str:
    """The answer's text; links of a template become shortcuts next to those there are."""
    if not answer.templated:
        return answer.text
    session = call.session
    taken = known_shortcuts(session)
    if len(answer.text) > LARGE_FILE_BYTES:
        rendered = await asyncio.to_thread(render_text, answer.text, taken)
    else:
        rendered = render_text(answer.text, taken)
    session.auto_shortcuts |= rendered.auto_shortcuts
    return rendered.text
