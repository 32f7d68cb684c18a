"""Completion scripts for bash, zsh and fish."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stringd.cli.shells.help_text import HelpPage

TOPICS: Final = ("file:main", "bash:", "web:", "app:")


def bash(pages: Sequence[HelpPage], string: HelpPage) -> str:
    """What bash reads."""
    cases = "\n".join(
        f"    {page.name}) words='{' '.join([*page.commands, *page.options])}' ;;" for page in pages
    )
    names = " ".join(page.name for page in pages)
    return f"""\
_stringd() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{names} --help --version' -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
_stringd_string() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}"
  [ "$COMP_CWORD" -eq 1 ] || return
  COMPREPLY=($(compgen -W '{" ".join([*string.options, *string.commands])}' -- "$current"))
}}
complete -o default -F _stringd stringd
complete -o default -F _stringd_string string st
"""


def zsh(pages: Sequence[HelpPage], string: HelpPage) -> str:
    """What zsh reads."""
    cases = "\n".join(
        f"    {page.name}) offered=({_described({**page.commands, **page.options})}) ;;"
        for page in pages
    )
    names = _described({page.name: page.summary for page in pages})
    return f"""\
#compdef stringd string st
_stringd() {{
  local typed=${{words[2]}}
  local -a offered
  if [[ $service != stringd ]]; then
    offered=({_described({**string.options, **string.commands, **dict.fromkeys(TOPICS, "topic")})})
    (( CURRENT == 2 )) && _describe word offered || _files
    return
  fi
  if (( CURRENT == 2 )); then
    offered=({names})
    _describe command offered
    return
  fi
  case $typed in
{cases}
  esac
  _describe word offered || _files
}}
_stringd "$@"
"""


def fish(pages: Sequence[HelpPage], string: HelpPage) -> str:
    """What fish reads."""
    lines = ["complete -c stringd -n __fish_use_subcommand -l help -d 'say more'"]
    for page in pages:
        summary = _quoted(page.summary)
        lines.append(f"complete -c stringd -n __fish_use_subcommand -f -a {page.name} -d {summary}")
        seen = f"-n '__fish_seen_subcommand_from {page.name}'"
        for word, about in page.commands.items():
            lines.append(f"complete -c stringd {seen} -a {word} -d {_quoted(about)}")
        for flag, about in page.options.items():
            lines.append(f"complete -c stringd {seen} {_fish_flag(flag)} -d {_quoted(about)}")
    # In fish itself `string` is a builtin of the shell.
    for flag, about in string.options.items():
        lines.append(f"complete -c st {_fish_flag(flag)} -d {_quoted(about)}")
    lines += [f"complete -c st -n __fish_use_subcommand -a {topic}" for topic in TOPICS]
    return "\n".join(lines) + "\n"


SHELLS: Final[Mapping[str, Callable[[Sequence[HelpPage], HelpPage], str]]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}


def _fish_flag(flag: str) -> str:
    if flag.startswith("--"):
        return f"-l {flag[2:]}"
    return f"-s {flag[1:]}" if len(flag) == 2 else f"-o {flag[1:]}"


def _described(words: Mapping[str, str]) -> str:
    return " ".join(
        _quoted(f"{word.replace(':', chr(92) + ':')}:{about}") for word, about in words.items()
    )


def _quoted(text: str) -> str:
    """One word for all three shells: none of them needs an escape for these characters."""
    return "'" + text.replace("'", "’") + "'"
