"""The manual for authors names everything the code can say."""

import re
from pathlib import Path

import stringd.documents
from stringd.documents import METHODS, Document, parse, render

SOURCES = Path(stringd.documents.__file__).parent
MANUAL = Path(__file__).parents[2].joinpath("docs", "documents.md").read_text(encoding="utf-8")


def test_every_diagnostic_is_in_the_manual() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in SOURCES.glob("*.py"))
    codes = set(re.findall(r'Finding\([^"]*"([A-Z_]+)"', code))
    assert len(codes) >= 9
    assert {each for each in codes if f"`{each}`" not in MANUAL} == set()


def test_every_method_and_directive_is_in_the_manual() -> None:
    for word in [*METHODS, "[!nav:", "[!menu:", "[!include:", "[!requirements]"]:
        assert word in MANUAL


def test_the_manual_is_itself_a_document_without_warnings() -> None:
    document: Document = parse(MANUAL)
    assert document.diagnostics == ()
    assert document.find_block("what-a-reader-sees") is not None
    assert render(document).text.startswith("# Documents")


def test_everything_public_exists() -> None:
    for name in stringd.documents.__all__:
        assert getattr(stringd.documents, name) is not None
