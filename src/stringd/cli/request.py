"""`stringd request`: asks the gate for one command and passes on what it printed."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TextIO

from stringd import __version__
from stringd.client.gate import DEFAULT_TIMEOUT, Gate, GateClientError, host_name
from stringd.gate.display import render
from stringd.wire.gate import Blob, RequestAction, Response, ResponseError, Status, encode_response

_HELP: Final = """\
usage: stringd request [options] [--] COMMAND [ARG ...] ['|' COMMAND [ARG ...]] ...

Asks the human at `stringd gate` to let a command run, as root unless told otherwise,
and prints what it printed. A word that is just | starts the next command of a pipeline.

options:
  --reason TEXT      shown to the human
  --session NAME     who asks (default stringd-request)
  --env NAME=VALUE   LANG, TZ, HOME, TERM, DEBIAN_FRONTEND or LC_*; may be repeated
  --host NAME        run it on a machine of `stringd gate hosts`
  --no-privilege     run as the gate's user, not as root
  --forward-agent    let the command use the gate's SSH agent (with --no-privilege)
  --socket PATH      the gate's socket, if not at its usual place
  --json             print the gate's response object; output is base64 in it
  --print            print a summary for people and exit 0
  --ping             ask whether a gate answers
  --stop             ask the gate to end
  -V, --version      print the version
  -h, --help         print this

The exit code is the last command's (255 if a signal ended it), 1 if it did not run.
STRINGD_REQUEST_TIMEOUT sets how many seconds to wait for an answer (600).
"""
_VALUES: Final = {
    "--reason": "reason",
    "--session": "session",
    "--socket": "socket",
    "--host": "host",
}
_FLAGS: Final = {
    "--no-privilege": "no_privilege",
    "--forward-agent": "forward_agent",
    "--json": "json",
    "--print": "print",
    "--ping": "ping",
    "--stop": "stop",
    "--version": "version",
    "-V": "version",
    "--help": "help",
    "-h": "help",
}


class RequestUsageError(Exception):
    pass


@dataclass(slots=True)
class RequestArguments:
    reason: str = ""
    session: str = "stringd-request"
    socket: str | None = None
    host: str = ""
    env: dict[str, str] = field(default_factory=dict)
    no_privilege: bool = False
    forward_agent: bool = False
    json: bool = False
    print: bool = False
    ping: bool = False
    stop: bool = False
    version: bool = False
    help: bool = False
    pipeline: list[list[str]] = field(default_factory=list)


def main(name: str, argv: Sequence[str]) -> int:  # noqa: ARG001
    """Run `stringd request`."""
    try:
        options = parse(argv)
    except RequestUsageError as error:
        print(f"error: {render(str(error))}", file=sys.stderr)
        return 1
    if options.help:
        print(_HELP, end="")
        return 0
    if options.version:
        print(f"stringd {__version__}")
        return 0
    try:
        response = _ask(options)
        return _report(response, options)
    except (GateClientError, ResponseError) as error:
        return _failed(str(error), options)


def parse(argv: Sequence[str]) -> RequestArguments:
    """The options, then the command from the first other word. Raises `RequestUsageError`."""
    options = RequestArguments()
    words = list(argv)
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        _parse_option(options, word, words)
    options.pipeline = split_stages(words)
    asks_nothing = options.help or options.version or options.ping or options.stop
    if not options.pipeline and not asks_nothing:
        raise RequestUsageError("no command specified")
    if options.forward_agent and not options.no_privilege:
        raise RequestUsageError(
            "--forward-agent is only allowed with --no-privilege (root must not use your keys)"
        )
    return options


def split_stages(words: Sequence[str]) -> list[list[str]]:
    """Words to stages at every lone `|`; empty stages are dropped."""
    stages: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return [stage for stage in stages if stage]


def _parse_option(options: RequestArguments, word: str, rest: list[str]) -> None:
    name, has_value, value = word.partition("=")
    if name in _FLAGS and not has_value:
        setattr(options, _FLAGS[name], True)
        return
    if name not in _VALUES and name != "--env":
        raise RequestUsageError(f"unknown option: {word}")
    if not has_value:
        if not rest:
            raise RequestUsageError(f"{name} requires a value")
        value = rest.pop(0)
    if name in ("--socket", "--host") and not value:
        raise RequestUsageError(f"{name} requires a value")
    if name == "--env":
        key, has_content, content = value.partition("=")
        if not has_content:
            raise RequestUsageError(f"--env requires NAME=VALUE, not {value}")
        options.env[key] = content
    else:
        setattr(options, _VALUES[name], value)


def _ask(options: RequestArguments) -> Response:
    seconds = os.environ.get("STRINGD_REQUEST_TIMEOUT", "")
    timeout = float(seconds) if seconds.isdigit() and int(seconds) else DEFAULT_TIMEOUT
    gate = Gate(options.socket, timeout=timeout)
    if options.ping:
        return gate.ping()
    if options.stop:
        return gate.stop()
    return gate.run(
        options.pipeline,
        reason=options.reason,
        session=options.session,
        host=options.host or host_name(),
        action=RequestAction.REMOTE if options.host else RequestAction.EXEC,
        env=options.env,
        privileged=not options.no_privilege,
        forward_agent=options.forward_agent,
    )


def _report(response: Response, options: RequestArguments) -> int:
    if options.json:
        _write(sys.stdout, b"".join(encode_response(response)))
    elif (options.ping or options.stop) and _predates_control(response):
        return _report_older(response, options)
    elif options.print:
        print("\n".join(_summary(response)))
        return 0
    else:
        _pass_on(response)
    return _exit_code(response)


def _predates_control(response: Response) -> bool:
    """Whether it is a gate that knows commands only, and took ours for one without words."""
    return response.message == "pipeline must not be empty"


def _report_older(response: Response, options: RequestArguments) -> int:
    version = render(response.version or "of unknown version")
    if options.stop:
        print(
            f"error: this gate ({version}) predates stop: end it in its terminal", file=sys.stderr
        )
        return 1
    print(f"running ({version}, predates ping)")
    return 0


def _exit_code(response: Response) -> int:
    if response.status is not Status.OK:
        return 1
    return response.stages[-1].exit_code & 0xFF if response.stages else 0


def _pass_on(response: Response) -> None:
    if response.stdout is not None:
        _write(sys.stdout, bytes(response.stdout))
    for stage in response.stages:
        _write(sys.stderr, bytes(stage.stderr))
    for text in _remarks(response):
        print(render(text), file=sys.stderr)
    if response.status is Status.OK and not response.stages and response.message:
        print(render(response.message))


def _remarks(response: Response) -> list[str]:
    """What there is to say besides the output."""
    if response.status is Status.DENIED:
        note = response.decision_note
        return ["Request denied.", *([f"Note: {note}"] if note else [])]
    if response.status is Status.TIMEOUT:
        return ["Request timed out."]
    if response.status is Status.ERROR:
        return [f"Error: {response.message or 'unknown'}"]
    remarks = []
    if response.stdout_truncated or any(stage.stderr_truncated for stage in response.stages):
        remarks.append("(output truncated at 16 MiB a stream)")
    if response.stages and response.stages[-1].exit_code != 0:
        remarks.append(f"(exit code: {response.stages[-1].exit_code})")
    return remarks


def _summary(response: Response) -> list[str]:
    lines = [f"status: {response.status}"]
    lines += [f"stage {i}: exit {s.exit_code}" for i, s in enumerate(response.stages)]
    lines += [render(text) for text in _remarks(response)]
    streams = [("stdout", response.stdout)]
    streams += [(f"stderr {i}", stage.stderr) for i, stage in enumerate(response.stages)]
    for name, blob in streams:
        lines += _stream_summary(name, blob)
    return lines


def _stream_summary(name: str, blob: Blob | None) -> list[str]:
    if blob is None or not bytes(blob):
        return []
    text = bytes(blob).decode("utf-8", "surrogateescape")
    return [f"{name}:", *(f"  {render(line)}" for line in text.removesuffix("\n").split("\n"))]


def _failed(message: str, options: RequestArguments) -> int:
    if options.json:
        response = Response("", Status.ERROR, message=message)
        _write(sys.stdout, b"".join(encode_response(response)))
    else:
        print(f"error: {render(message)}", file=sys.stderr)
    return 1


def _write(stream: TextIO, data: bytes) -> None:
    """Bytes as they are; a reader that went away is not our trouble."""
    try:
        stream.flush()
        stream.buffer.write(data)
        stream.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
