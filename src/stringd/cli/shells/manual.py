"""Manual pages, as `man` reads them."""

from collections.abc import Sequence

from stringd import __version__
from stringd.cli.shells.help_text import HelpPage


def manual(pages: Sequence[HelpPage], string: HelpPage, overview: str) -> dict[str, str]:
    """File name → page: `stringd.1`, `string.1` and one for each subcommand."""
    made = {
        "stringd.1": _page("stringd", "a local daemon for AI agents", overview),
        "string.1": _page("string", string.summary, string.text),
    }
    for page in pages:
        name = f"stringd-{page.name}"
        made[f"{name}.1"] = _page(name, page.summary, page.text)
    return made


def _page(name: str, summary: str, text: str) -> str:
    body = "\n".join(map(_literal, text.rstrip().splitlines()))
    return (
        f'.TH {name.upper()} 1 "" "stringd {__version__}" "stringd"\n'
        f".SH NAME\n{name} \\- {_literal(summary)}\n"
        f".SH DESCRIPTION\n.nf\n{body}\n.fi\n"
        ".SH SEE ALSO\nstringd(1), string(1)\n"
    )


def _literal(line: str) -> str:
    """A line that shows as it is."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
