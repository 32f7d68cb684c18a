"""A line, or a command with its body, typed by a person."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.styles import Style

from stringd.cli.prompt.files import files
from stringd.cli.prompt.kept_lines import KeptLines
from stringd.cli.prompt.suggest import TopicWords, suggestions
from stringd.cli.prompt.topic_look import TopicLook
from stringd.cli.streams import visible

TAKES_BODY: Final = ("/write ", "/append ", "/replace ")
"""Commands that are nothing without the lines below them."""
HINT: Final = " Alt-Enter or Ctrl-D sends   Enter: a new line   Ctrl-C gives up "
STYLE: Final = Style.from_dict({"bottom-toolbar": "noreverse ansigray", "prompt": "bold"})


class Prompt:
    """Reads what a person types for one topic. Shown on standard error, as prompts of shells."""

    def __init__(self, look: TopicLook, topic: str) -> None:
        kind = "shell" if topic.startswith("bash:") else "commands"
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", f"[{topic}] > ")],
            completer=_TopicCompleter(look),
            complete_while_typing=False,
            complete_in_thread=True,
            history=KeptLines(Path(f"~/.string/history/{kind}.jsonl").expanduser()),
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=_continuation,
            bottom_toolbar=lambda: HINT if _has_body() else None,
            enable_open_in_editor=True,
            enable_suspend=True,
            style=STYLE,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
            output=create_output(stdout=sys.stderr),
        )
        # A terminal that does not say where its cursor is shows no menus; that needs no warning.
        self._session.app.renderer.cpr_not_supported_callback = None

    def read(self) -> str | None:
        """What was typed; None at the end: Ctrl-D, or Ctrl-C on an empty line."""
        while True:
            try:
                return self._session.prompt()
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    return None


class _TopicCompleter(Completer):
    def __init__(self, look: TopicLook) -> None:
        self._look = look

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the base names it
    ) -> Iterable[Completion]:
        if document.cursor_position_row:
            return
        words = self._look.words()
        for each in suggestions(
            document.text_before_cursor, words, lambda typed: files(typed, _bases(words))
        ):
            yield Completion(
                each.text,
                -each.replaces,
                display=visible(each.text),
                display_meta=visible(each.about.partition("\n")[0]),
            )


def _continuation(width: int, _line: int, wraps: int) -> str:
    """Mark lines of a body, but not the rest of a line that the terminal is too narrow for."""
    return "" if wraps else "… ".rjust(width)


def _bases(words: TopicWords) -> list[str]:
    """Where relative paths may begin."""
    if words.is_bash:
        return [words.directory or os.curdir]
    return [os.curdir, words.home]


@Condition
def _has_body() -> bool:
    from prompt_toolkit.application import get_app

    return "\n" in get_app().current_buffer.text


def _keys() -> KeyBindings:
    """Enter sends a line; in a body it begins the next one, and Alt-Enter sends."""
    keys = KeyBindings()

    @keys.add("enter", filter=~_has_body)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text.lstrip().startswith(TAKES_BODY):
            buffer.cursor_position = len(buffer.text)
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def alt_enter(event: KeyPressEvent) -> None:
        if "\n" in event.current_buffer.text or not event.current_buffer.text.strip():
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    @keys.add("c-d", filter=_has_body)
    def end_of_body(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("c-c")
    def give_up(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys
