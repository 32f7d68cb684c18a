"""`GET /topics/<user>/<topic>`: one topic for a person who looks on.

Nothing of the topic changes, nothing runs, nothing is fetched, and no turn is taken: a topic can be
looked at while it is busy.
"""

from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from stringd.documents import outline
from stringd.runtime.commands.bash import HELP as BASH_HELP
from stringd.runtime.commands.help import GROUPS
from stringd.runtime.commands.set import shown_variables
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.peek import peek, read
from stringd.runtime.shell.shell import Shell
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.line import CommandLine
from stringd.server.feed.commands import shown_command
from stringd.server.http.messages import CORS_HEADERS, HttpError, HttpRequest, HttpResponse
from stringd.wire import topic_view as v
from stringd.wire.topic import InvalidTopicError, parse_topic

if TYPE_CHECKING:
    from stringd.documents import Action
    from stringd.runtime.runtime import Runtime
    from stringd.runtime.topics.location import Location, Page
    from stringd.runtime.topics.session import Session, Slot
    from stringd.server.feed.topics import TopicWatch

PATH: Final = "/topics/"
OUTPUT: Final = "/output"
INPUT: Final = "/input"
SHOWN_CHARACTERS: Final = 400_000
OUTLINE_ENTRIES: Final = 500

_LOOK: Final = CommandLine("info", "info", "", None)
_HEAD: Final = b"Content-Type: application/json\r\nCache-Control: no-store\r\n" + CORS_HEADERS


class FoundTopic(NamedTuple):
    """A topic that has something to look at."""

    slot: "Slot"
    session: "Session"


def find_topic(runtime: "Runtime", path: str) -> FoundTopic:
    """The topic an address names. Raises `HttpError`."""
    user, _, name = path.removeprefix(PATH).partition("/")
    user, name = unquote(user), unquote(name)
    try:
        topic = parse_topic(name) if name.strip() else None
    except InvalidTopicError:
        topic = None
    for slot in runtime.topics.sessions(user) if topic else ():
        if topic is not None and slot.topic.canonical == topic.canonical and slot.session:
            return FoundTopic(slot, slot.session)
    raise HttpError(404, f"Topic not found: {user}/{name}")


class TopicViewEndpoint:
    """Answers one look at a topic."""

    def __init__(self, runtime: "Runtime", watch: "TopicWatch") -> None:
        self._runtime = runtime
        self._watch = watch

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        slot, session = find_topic(self._runtime, request.path)
        call = Call(self._runtime.services, self._runtime.topics, session, _LOOK)
        is_bash = slot.topic.type == "bash"
        variables, problem = _variables(call)
        view = v.TopicView(
            user=slot.user_id,
            topic=slot.topic.canonical,
            type=slot.topic.type,
            home=session.user.home,
            executing=slot.queue.busy,
            running=self._running(slot),
            queued=[shown_command(text) for text in slot.queue.waiting],
            commands=_forms(is_bash=is_bash),
            document=await _document(call, session.location) if session.location else None,
            history=[_place(session, place) for place in reversed(list(session.history))],
            variables=variables,
            variables_problem=problem,
            shell=_shell(session) if is_bash else None,
            terminal=_terminal(session) if is_bash else None,
        )
        return HttpResponse(200, _HEAD, v.encode_view(view))

    def _running(self, slot: "Slot") -> list[v.RunningView]:
        now = perf_counter()
        return [
            v.RunningView(
                command=each.command, client=each.client, ms=round((now - each.began) * 1000, 1)
            )
            for each in self._watch.running.values()
            if (each.user, each.topic) == (slot.user_id, slot.topic.canonical)
        ]


async def _document(call: Call, location: "Location") -> v.DocumentView:
    page, problem = None, ""
    try:
        page = await peek(call, location)
        if page is None:
            problem = "The page was not kept while the daemon restarted. /refresh loads it again."
    except CommandError as error:
        problem = error.message
    text = await read(call, page, location.block) if page else ""
    if page and page.appendix and location.block is None:
        text = f"{text}\n\n---\n\n{page.appendix}"
    document = page.document if page else None
    return v.DocumentView(
        uri=location.uri,
        shown=call.session.shown(location.uri),
        title=(document.title if document else None) or "",
        block=location.block,
        markdown=text[:SHOWN_CHARACTERS],
        cut=len(text) > SHOWN_CHARACTERS,
        outline=[
            v.OutlineView(id=each.id, title=each.title, level=each.level)
            for each in (outline(document)[:OUTLINE_ENTRIES] if document else ())
        ],
        menus=_menus(page) if page else [],
        shortcuts=_shortcuts(call.session, page) if page else [],
        actions=[_action(each) for each in document.actions.values()] if document else [],
        warnings=list(page.warnings) if page else [],
        problem=problem,
    )


def _shortcuts(session: "Session", page: "Page") -> list[str]:
    """Every `@name` known here, also while the session itself has not loaded its document."""
    menus = (entry.id for menu in page.menus.values() for entry in menu.entries)
    names = (*page.document.shortcuts, *session.value_shortcuts, *session.auto_shortcuts, *menus)
    return list(dict.fromkeys(names))


def _menus(page: "Page") -> list[v.MenuView]:
    return [
        v.MenuView(
            name=menu.name,
            entries=[
                v.MenuEntryView(id=each.id, label=each.label, target=each.target)
                for each in menu.entries
            ],
        )
        for menu in page.menus.values()
    ]


def _action(action: "Action") -> v.ActionView:
    fields = [
        v.FieldView(
            name=each.name,
            type=each.type,
            required=each.required,
            description=each.description,
            default=each.default,
            choices=list(each.choices),
            minimum=each.minimum,
            maximum=each.maximum,
        )
        for each in action.fields
    ]
    return v.ActionView(id=action.id, method=action.method, fields=fields)


def _place(session: "Session", place: "Location") -> v.PlaceView:
    title = (place.page.document.title if place.page else None) or ""
    return v.PlaceView(shown=session.shown(place.uri), block=place.block, title=title)


def _variables(call: Call) -> tuple[list[v.VariableView], str]:
    try:
        found = shown_variables(call)
    except CommandError as error:
        return [], error.message
    return [v.VariableView(name=n, value=value, masked=masked) for n, value, masked in found], ""


def _forms(*, is_bash: bool) -> list[v.CommandForm]:
    entries = BASH_HELP if is_bash else [each for group in GROUPS.values() for each in group]
    return [v.CommandForm(form=form, what=what) for form, what in entries]


def _shell(session: "Session") -> v.ShellView:
    shell = session.running
    if not isinstance(shell, Shell) or shell.ended:
        return v.ShellView(
            alive=False,
            busy=False,
            pid=0,
            directory=session.user.home,
            level="",
            command="",
            waits_for_input=False,
            seconds_left=None,
        )
    running = shell.command if shell.busy else None
    return v.ShellView(
        alive=True,
        busy=running is not None,
        pid=shell.pid,
        directory=shell.directory,
        level=shell.level,
        command=shown_command(running.title) if running else "",
        waits_for_input=running is not None and shell.waits_for_input,
        seconds_left=shell.seconds_left,
    )


def _terminal(session: "Session") -> v.TerminalView:
    scrollback = session.terminal()
    shown = scrollback.read()
    return v.TerminalView(position=f"{scrollback.life}-{shown.number}", events=shown.events)
