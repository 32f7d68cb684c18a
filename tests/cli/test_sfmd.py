"""`stringd sfmd`: a helper for authors that needs no daemon."""

import json
import tomllib
from pathlib import Path

import pytest

from stringd.cli.main import main, sfmd

OWN = "\n<!-- #own -->\nown\n<!-- /own -->\n"
DOCUMENT = f"# Doc\n\n[!include:intro]()\n[!include:part](parts/p.md)\n{OWN}"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A document of several files, one of which it does not name."""
    for name, text in {
        "doc.md": DOCUMENT,
        "doc.md.source/intro.md": "\nHello.\n\n",
        "doc.md.source/lost.md": "Lost.\n",
        "parts/p.md": "Part.\n",
        ".hidden/bad.md": "<!-- #x -->\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_document_is_put_together_in_place(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = place / "doc.md"
    document.write_text(f"\ufeff{DOCUMENT}[!include:new]()\n", encoding="utf-8")
    assert main(["sfmd", "compile", str(place), "doc"]) == 0
    assert document.read_text(encoding="utf-8") == (
        "\ufeff# Doc\n\n<!-- #intro -->\nHello.\n<!-- /intro -->\n"
        f"<!-- #part -->\nPart.\n<!-- /part -->\n{OWN}<!-- #new -->\n<!-- /new -->\n"
    )
    assert (place / "doc.md.source/new.md").read_bytes() == b""
    assert capsys.readouterr().out == f"[new] {place}/doc.md.source/new.md\n[ok] {document}\n"


def test_an_include_that_leaves_the_directory_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = place / "doc.md"
    document.write_text("[!include:x](../x.md)\n", encoding="utf-8")
    assert main(["sfmd", "compile", str(place), "doc"]) == 1
    assert "an include must not leave the document's directory" in capsys.readouterr().err
    assert document.read_text(encoding="utf-8") == "[!include:x](../x.md)\n"


def test_validation_fails_on_any_finding(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sfmd", "validate", str(place / "doc.md")]) == 0
    assert main(["sfmd", "validate", str(place)]) == 1
    assert capsys.readouterr().out == (
        f"{place}/doc.md.source/lost.md: not included by {place}/doc.md\n"
    )
    (place / "bad.md").write_text("text\n<!-- #x -->\n", encoding="utf-8")
    assert main(["sfmd", "validate", str(place / "bad.md")]) == 1
    assert capsys.readouterr().out == (
        f"{place}/bad.md: Line 2: UNCLOSED_BLOCK: <!-- #x --> has no closing <!-- /x -->\n"
    )


def test_shortcuts_nobody_defines_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, menu = place / "page.md", place / "menu.md"
    page.write_text("[!nav:m](menu.md)\n[Go][@go] [Home][@m.home]\n", encoding="utf-8")
    assert main(["sfmd", "validate", str(page)]) == 1
    said = capsys.readouterr().out
    assert f"{page}: MISSING_MENU: the menu m is not there: menu.md\n" in said
    assert "Unknown shortcut @go" in said
    menu.write_text("[@home Home](home.md)\n", encoding="utf-8")
    assert main(["sfmd", "validate", str(page)]) == 1
    assert capsys.readouterr().out == (
        f"{page}: Unknown shortcut @go — define with: [@go Go](URI)\n"
    )


def test_a_block_is_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = str(place / "doc.md")
    for name in ("#own", "own"):
        assert main(["sfmd", "extract", document, name]) == 0
        assert capsys.readouterr().out == "own\n"
    assert main(["sfmd", "extract", document, "#none"]) == 1
    assert capsys.readouterr().err == f"!ERR EXTRACT BLOCK_NOT_FOUND {document}#none\n"


def test_a_command_that_calls_would_be_refused_for_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "app.md"
    page.write_text("# App\n\n```act.x\nCLI eval {q}\n  q: string\n```\n", encoding="utf-8")
    assert main(["sfmd", "validate", str(page)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith(f"{page}: Line 4: UNSAFE_HOLE: act.x: {{q}}: ")
    assert "Safe spelling: " in shown
    page.write_text("# App\n\n```act.x\nCLI echo {q}\n  q: string\n```\n", encoding="utf-8")
    assert main(["sfmd", "validate", str(page)]) == 0


def test_lost_source_files_are_included_or_deleted(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sfmd", "fix", str(place)]) == 0
    assert (place / "doc.md").read_text(encoding="utf-8") == f"{DOCUMENT}[!include:lost]()\n"
    assert capsys.readouterr().out == f"[ok] {place}/doc.md: lost\n"
    assert main(["sfmd", "clean", str(place)]) == 0
    assert capsys.readouterr().out == ""
    (place / "doc.md").write_text(DOCUMENT, encoding="utf-8")
    assert main(["sfmd", "clean", str(place)]) == 0
    assert capsys.readouterr().out == f"[removed] {place}/doc.md.source/lost.md\n"
    assert [path.name for path in (place / "doc.md.source").iterdir()] == ["intro.md"]


def test_what_was_compiled_is_not_cleaned_away(place: Path) -> None:
    main(["sfmd", "compile", str(place), "doc"])
    main(["sfmd", "clean", str(place)])
    assert (place / "doc.md.source/intro.md").exists()


def test_what_cannot_be_read_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sfmd", "validate", str(place / "none.md")]) == 1
    assert "none.md: No such file or directory" in capsys.readouterr().err
    assert main(["sfmd", "fix", str(place / "none")]) == 1
    assert "none: Not a directory" in capsys.readouterr().err
    (place / "bin.md").write_bytes(b"\xff")
    assert main(["sfmd", "extract", str(place / "bin.md"), "#x"]) == 1
    assert "UTF-8" in capsys.readouterr().err


def test_it_has_a_command_of_its_own(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    scripts = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts["sfmd"] == f"{sfmd.__module__}:{sfmd.__name__}"
    monkeypatch.setattr("sys.argv", ["sfmd", "extract", str(place / "doc.md"), "#own"])
    assert sfmd() == 0
    assert capsys.readouterr().out == "own\n"


BROKEN = """---
title: "never closed
name: x
---
# A

[!menu:nav](nav.md)

[Docs][@nowhere]

```act.get
GET https://h.test/{idd}
  id: string
```

```act.get.response
for: items
{Response.body.name
end:
for: x in Response.body.items
{x}
{x.name
```

```act.put
POST https://h.test/
  id: string
  id: number
```
"""


def test_17_one_pass_finds_what_authors_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(BROKEN)
    assert main(["sfmd", "validate", str(page)]) == 1
    said = capsys.readouterr().out
    for found in (
        "INVALID_FRONTMATTER",
        "MISSING_MENU: the menu nav is not there: nav.md",
        "Line 12: UNKNOWN_FIELD: act.get: no field defines {idd}; its fields are id",
        "Line 17: LOOP_WITHOUT_LIST: act.get.response: write a loop as for: item in",
        "Line 18: UNCLOSED_VALUE: act.get.response: {Response… needs a closing }",
        "Line 20: LOOP_WITHOUT_END: act.get.response: for: without an end:",
        "Line 22: UNCLOSED_VALUE: act.get.response: {x… needs a closing }",
        'Line 28: INVALID_FIELD: id of action "put" is declared twice; the first one counts',
    ):
        assert found in said, found
    assert main(["sfmd", "validate", "--json", str(page)]) == 1
    assert json.loads(capsys.readouterr().out) == said.splitlines()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "```act.x\nCLI echo {n}\n  n: numbr\n```\n",
            "Line 3: UNKNOWN_TYPE: act.x: n has the type numbr; is it number?",
        ),
        (
            "```act.x\nCLI echo {n}\n  n: number = 'many'\n```\n",
            (
                "Line 3: INVALID_DEFAULT: act.x: the default of n does not fit: "
                '--n must be a number; got "many".'
            ),
        ),
        (
            "```act.x\nCLI ls\n```\n```act.x.response\n{Response.stdot.lines}\n```\n",
            (
                "Line 5: UNKNOWN_ANSWER: act.x.response: an answer has no stdot; "
                "it has status, body, exit_code, stdout, stderr"
            ),
        ),
        ("[more](docs/more.md#x)\n", "MISSING_PAGE: it links to docs/more.md, which is not there"),
        ("[!include:x](x.md)\n", "MISSING_INCLUDE: it includes x.md, which is not there"),
    ],
)
def test_more_of_what_authors_break_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert main(["sfmd", "validate", str(page)]) == 1
    assert capsys.readouterr().out == f"{page}: {problem}\n"


def test_what_is_right_is_not_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "[self](page.md#top) [far](https://x.test/y.md) [home](~/z.md) [app](app:x)\n\n"
        "```act.x\nGET https://x.test/{q}\n  q: duration = '5m'\n  t: list = 'a, b'\n"
        "  k: string = '$KEY'\n```\n"
        "```act.x.error\n{Response.code} {Response.error} {Response.status}\n```\n",
        encoding="utf-8",
    )
    assert main(["sfmd", "validate", str(page)]) == 0
    assert capsys.readouterr().out == ""
