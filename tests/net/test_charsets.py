"""Bytes of the web as text."""

import pytest

from stringd.net.charsets import decoded, is_marked


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "utf-8"])
def test_a_byte_order_mark_says_more_than_any_declaration(charset: str) -> None:
    body = "\ufeff# Café".encode(charset)
    assert is_marked(body)
    assert decoded(body, None) == "# Café"
    assert decoded(body, "iso-8859-1", html=True) == "# Café"


@pytest.mark.parametrize(
    ("declared", "body", "text"),
    [
        ("iso-8859-1", b"\x93caf\xe9\x94", "“café”"),
        ("us-ascii", b"it\x92s", "it’s"),
        ("gb2312", "镕".encode("gb18030"), "镕"),
        ("Shift_JIS", "①".encode("cp932"), "①"),
        ("euc-kr", "똠".encode("cp949"), "똠"),
        ("koi8-r", "да".encode("koi8-r"), "да"),
    ],
)
def test_a_declared_charset_is_read_as_browsers_read_it(
    declared: str, body: bytes, text: str
) -> None:
    assert decoded(body, declared) == text
    page = f'<meta charset="{declared}">'.encode() + body
    assert decoded(page, None, html=True).endswith(text)


def test_a_page_that_claims_utf16_in_plain_letters_is_none() -> None:
    page = '<meta charset="utf-16"><p>Café'
    assert decoded(page.encode(), None, html=True) == page


def test_only_html_declares_itself_inside() -> None:
    text = "<meta charset=koi8-r> Café"
    assert decoded(text.encode(), None) == text


def test_undeclared_text_is_utf8_unless_none_of_it_can_be() -> None:
    assert decoded("Café".encode(), None) == "Café"
    assert decoded(b"caf\xe9 \x93x\x94", None) == "café “x”"
    assert decoded("Café ".encode() + b"\xff", None) == "Café \ufffd"
