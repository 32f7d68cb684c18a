"""A command line, taken apart: name, argument, body."""

import msgspec

from stringd.runtime.errors import CommandError


class CommandLine(msgspec.Struct, frozen=True, gc=False):
    """`name` is lower case, `typed` as it was written; `body` is None in the one-line form."""

    name: str
    typed: str
    argument: str
    body: str | None


def parse_line(text: str) -> CommandLine:
    """Take a command apart. Body bytes stay as they are, final line breaks included.

    Raises `CommandError` when the text does not start with `/`.
    """
    text = text.lstrip()
    if text.startswith("//"):
        text = text[1:]
    header, newline, body = text.partition("\n")
    words = header[1:].split(None, 1)
    if header[:1] != "/" or not words or header[1].isspace():
        raise CommandError(
            "COMMAND_UNSUPPORTED", "Commands must start with /. Use /help for details."
        )
    typed = words[0]
    argument = words[1].rstrip() if len(words) > 1 else ""
    return CommandLine(typed.lower(), typed, argument, body if newline else None)
