"""The `string` command: one command, or a session of them, from a shell.

Its one-shot path imports only what it needs of the standard library, because agents call it for
every single command.
"""

import os
import sys

from stringd import __version__
from stringd.cli.streams import secure_streams, visible
from stringd.client.daemon import (
    UsageError,
    chosen_user,
    default_home,
    health,
    healthy,
    knows,
    last_words,
    parse_port,
    port_from_environment,
    register,
    start,
    stop,
)
from stringd.client.exec import ExecReply, execute
from stringd.client.http import DaemonConnection, TransportError
from stringd.wire.topic import DEFAULT_TOPIC, InvalidTopicError, Topic, parse_topic

HELP = """\
usage: string <topic> '<command>'     run one command
       string <topic>                 read commands from standard input
       string '<command>'             run one command in file:main
       string --daemon [start|stop|status|foreground [port] [--log]]
       string --mcp                   serve MCP, as stringd mcp does
       string user list|current|add|use|set-home|set|rm
       string --help | --version

A topic is type:name with the types file, web, app and bash; a bare name means file:<name>.
The daemon is started when it does not run.

options:
  --json         print {"ok", "topic", "content"} instead of a text block
  --user <id>    act as this user (STRINGD_USER, else the one in use, else default)

environment:
  STRINGD_PORT   port of the daemon (3100)
  STRINGD_USER   user to act as (default)
  STRINGD_HOME   home of that user (where it lives, else ~/.string/users/<user>)

examples:
  string file:main /help
  string file:main '/open ./README.md'
  string bash:dev 'git status'

on a terminal:
  Tab completes commands, files, blocks, actions; Up and Ctrl-R find earlier lines
  Alt-Enter begins a body below the line, and sends it; /write opens one by itself
  Ctrl-C gives up the line, or the waiting; Ctrl-D ends the session
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stringd.cli.prompt.conversation import Conversation

ANSWER_SECONDS = 15.0
"""How long a daemon may take to say whom it knows."""
CHANNEL = "\N{MATHEMATICAL SCRIPT CAPITAL C}"


class StringOptions:
    """What the command line asks for."""

    def __init__(self) -> None:
        self.json = False
        self.user = chosen_user()
        self.words: list[str] = []


def main(argv: list[str] | None = None) -> int:
    """Run `string` with these arguments and return its exit code."""
    args = sys.argv[1:] if argv is None else argv
    secure_streams()
    try:
        if not args or args[0] in ("--help", "-h"):
            sys.stdout.write(HELP)
            return 0
        if args[0] in ("--version", "-V"):
            sys.stdout.write(f"string {__version__}\n")
            return 0
        if args[0] == "--daemon":
            return control(args[1:])
        if args[0] == "--mcp" or (args[0].startswith("--user") and "--mcp" in args[1:3]):
            from stringd.cli.mcp import main as serve_mcp

            return serve_mcp("mcp", [word for word in args if word != "--mcp"])
        if args[0] == "user" and args[1:] and not args[1].startswith("/"):
            from stringd.cli.users import main as manage_users

            return manage_users(args[1:])
        options = parse(args)
        if options.words[0].startswith("/"):
            options.words.insert(0, DEFAULT_TOPIC)
        topic = parse_topic(options.words[0])
        if len(options.words) == 1:
            return converse(options, topic)
        command = join(options.words[1:])
        opened = opened_topic(command)
        if opened is not None and opened.type == "bash":
            # Whatever a shell topic gets is input of its shell, `/open` too.
            command = "//info"
        return once(options, opened or topic, command)
    except InvalidTopicError as error:
        return fail(f"invalid topic: {error.raw}")
    except (UsageError, TransportError) as error:
        return fail(str(error))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def parse(args: list[str]) -> StringOptions:
    """Flags are before the first word. Raises `UsageError` for an unknown one."""
    options = StringOptions()
    rest = list(args)
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag == "--json":
            options.json = True
        elif flag.startswith("--user="):
            options.user = flag.removeprefix("--user=")
        elif flag == "--user" and not rest:
            raise UsageError("--user needs the id of a user")
        elif flag == "--user":
            options.user = rest.pop(0)
        else:
            hint = " Did you mean --daemon?" if flag == "--deamon" else ""
            raise UsageError(f"unknown flag '{flag}'.{hint}")
    for place in (-1, 1):
        if rest[place : place + 1 or None] == ["--json"]:
            options.json = True
            del rest[place]
    if not rest:
        raise UsageError("no topic or command given. See string --help.")
    if not options.user.isprintable() or not options.user.strip():
        raise UsageError("a user id may contain only printable characters")
    options.words = rest
    return options


def opened_topic(command: str) -> Topic | None:
    """The topic that `/open app:x` and `/open bash:x` name themselves."""
    verb, _, target = command.strip().partition(" ")
    if verb != "/open" or not target.startswith(("app:", "bash:")):
        return None
    try:
        return parse_topic(target)
    except InvalidTopicError:
        return None


def join(words: list[str]) -> str:
    """The command in one string: a single word unchanged, several quoted where they need it."""
    if len(words) == 1:
        return words[0]
    from stringd.cli.quoting import quote

    return " ".join(map(quote, words))


def connect(options: StringOptions) -> DaemonConnection:
    """A connection to a running daemon that knows the user; starts the daemon if needed."""
    port = port_from_environment()
    connection = DaemonConnection(port, ANSWER_SECONDS)
    try:
        ensure_user(connection, options.user)
    except TransportError as error:
        # Who takes connections and does not answer occupies the port.
        if isinstance(error.__cause__, TimeoutError) or healthy(port):
            raise
        if not start(port):
            raise TransportError(f"failed to start stringd on port {port}{last_words()}") from None
        ensure_user(connection, options.user)
    # A command takes the time it takes.
    connection.timeout = None
    return connection


def ensure_user(connection: DaemonConnection, user: str) -> None:
    """Register the user. Without a chosen home, an existing user keeps the one it has."""
    chosen = os.environ.get("STRINGD_HOME", "").strip()
    if not chosen and knows(connection, user):
        return
    home = default_home(user)
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot use {home} as home: {error.strerror}") from error
    register(connection, user, home)


def once(options: StringOptions, topic: Topic, command: str) -> int:
    """Run one command, print its reply, and tell by the exit code whether it succeeded."""
    connection = connect(options)
    try:
        reply = execute(connection, options.user, topic.canonical, command, working_directory())
    finally:
        connection.close()
    show(reply, topic, as_json=options.json)
    return 0 if reply.ok else 1


class Lines:
    """A session whose commands come line by line, from a pipe or a terminal that only prints."""

    def __init__(self, connection: DaemonConnection, user: str, topic: Topic) -> None:
        self._connection = connection
        self._user = user
        self._topic = topic

    def read(self) -> "str | None":
        """The next command; None at the end."""
        if sys.stdin.isatty():
            sys.stderr.write(f"[{self._topic}] > ")
            sys.stderr.flush()
        line = sys.stdin.buffer.readline()
        return line.decode("utf-8", "replace") if line else None

    def ask(self, command: str) -> ExecReply:
        """Run a command. Raises `TransportError`."""
        directory = working_directory()
        return execute(self._connection, self._user, self._topic.canonical, command, directory)


def conversation(connection: DaemonConnection, user: str, topic: Topic) -> "Lines | Conversation":
    """A prompt with history and completions where the terminal can show one."""
    if sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from stringd.cli.prompt.conversation import Conversation

        return Conversation(connection, user, topic.canonical, working_directory())
    return Lines(connection, user, topic)


def converse(options: StringOptions, topic: Topic) -> int:
    """Run commands until the end of input, `/exit` or `/quit`."""
    connection = connect(options)
    said = conversation(connection, options.user, topic)
    try:
        while (typed := said.read()) is not None:
            command = typed.strip()
            if command in ("/exit", "/quit"):
                break
            if not command:
                continue
            try:
                reply = said.ask(command)
                if reply is not None:
                    show(reply, topic, as_json=options.json)
            except TransportError as error:
                fail(str(error))
    except KeyboardInterrupt:
        pass
    finally:
        connection.close()
    if sys.stdin.isatty():
        sys.stderr.write("\nBye.\n")
    return 0


def show(reply: ExecReply, topic: Topic, *, as_json: bool) -> None:
    """Print a reply as a text block, or as one line of JSON."""
    if as_json:
        import json

        fields = {"ok": reply.ok, "topic": topic.canonical}
        if not reply.ok:
            fields["code"] = reply.code
        text = json.dumps(
            {**fields, "content": reply.content}, ensure_ascii=False, separators=(",", ":")
        )
    else:
        content = reply.content
        if CHANNEL in content:
            from stringd.wire.chanflow import escape

            content = escape(content)
        text = f"<{CHANNEL}=string:{topic}>\n{content}\n</{CHANNEL}>"
    if sys.stdout.isatty():
        text = visible(text)
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "replace"))
    sys.stdout.flush()


def control(args: list[str]) -> int:
    """`string --daemon …`."""
    log = "--log" in args
    words = [word for word in args if word != "--log"]
    verb = words[0] if words else "start"
    if verb not in ("start", "stop", "status", "foreground"):
        sys.stderr.write(
            f"string: unknown daemon command: {verb}\nUsage: string --daemon [start|stop|status]\n"
        )
        return 1
    port = parse_port("port", words[1]) if len(words) > 1 else port_from_environment()
    if verb == "start":
        return control_start(port, log=log)
    if verb == "stop":
        return control_stop(port)
    if verb == "status":
        return control_status(port)
    from stringd.cli.serve import main as serve

    return serve("serve", ["--port", str(port), *(["--log"] if log else [])])


def control_start(port: int, *, log: bool = False, program: str = "string") -> int:
    """Start the daemon unless it runs; `program` is who complains when it cannot."""
    replaced = ""
    if healthy(port):
        from stringd.client.upgrade import make_way

        old = make_way(port)
        if old is None or not old.stopped:
            print(f"stringd already running on port {port}")
            if old is not None:
                busy = old.busy_with or "something that keeps it from stopping"
                print(
                    f"It is version {old.version}, with {busy}. "
                    f"To use {__version__}: stringd down, then stringd up"
                )
            return 0
        replaced = f" in place of version {old.version}"
    if not start(port, log=log):
        return fail(f"failed to start stringd on port {port}{last_words()}", program)
    print(f"stringd started on port {port}{replaced}")
    return 0


def control_stop(port: int, *, program: str = "string") -> int:
    """Stop the daemon if it runs."""
    if not healthy(port):
        print("stringd is not running")
        return 0
    if not stop(port):
        return fail(f"stringd on port {port} does not stop", program)
    print("stringd stopped")
    return 0


def control_status(port: int) -> int:
    """Tell whether the daemon runs; exit 1 when it does not."""
    held = health(port)
    if held is None:
        print("stringd is not running")
        return 1
    print(
        f"stringd running on port {port} — {held['users']} user(s), {held['sessions']} session(s)"
    )
    return 0


def working_directory() -> str | None:
    """The directory we vouch for; none when it was removed under us."""
    try:
        return os.getcwd()
    except OSError:
        return None


def fail(reason: str, program: str = "string") -> int:
    sys.stderr.write(f"{program}: {reason}\n")
    return 1
