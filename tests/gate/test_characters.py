import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.characters import cells, deceives, describe, is_clean, is_visible
from tests.requirements import proves

ALLOWED_CONTROL = "\t"


@proves("GATE-VAL-02")
def test_every_code_point_is_judged_as_the_list_of_ranges_says() -> None:
    ranges = [
        *[(0x00, 0x08), (0x0A, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E)],
        *[(0x200B, 0x200F), (0x2028, 0x2029), (0x202A, 0x202E), (0x2060, 0x2065), (0x2066, 0x2069)],
        *[(0x206A, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE0FFF)],
        *[(0xFDD0, 0xFDEF), *((p * 0x10000 + 0xFFFE, p * 0x10000 + 0xFFFF) for p in range(17))],
    ]
    forbidden = {code for low, high in ranges for code in range(low, high + 1)}
    wrong = [
        code for code in range(sys.maxunicode + 1) if is_clean(chr(code)) == (code in forbidden)
    ]
    assert wrong == []


@pytest.mark.parametrize("text", ["naïve café", "Привет", "日本語", "שלום", "👍", "a\tb", ""])
def test_text_in_any_script_is_clean(text: str) -> None:
    assert is_clean(text)


@pytest.mark.parametrize("code", [0x09, 0x7F, 0xA0, 0x2003, 0x3000, 0x34F, 0x3164, 0xFE0F, 0x2800])
def test_blank_and_invisible_characters_are_not_visible(code: int) -> None:
    assert not is_visible(chr(code))


@given(st.characters(max_codepoint=0x7E, min_codepoint=0x20))
def test_printable_ascii_is_visible_and_takes_one_column(character: str) -> None:
    assert is_visible(character)
    assert cells(character) == 1


@pytest.mark.parametrize(
    "text", ["pаypal", "e\u0301", "ｆｕｌｌ", "שלום", "ls عربي", "Привет world"]
)
def test_text_that_may_look_like_other_text_is_flagged(text: str) -> None:
    assert deceives(text)


@pytest.mark.parametrize("text", ["paypal", "café", "Привет", "日本語かな", "→ ok"])
def test_text_of_one_script_is_not_flagged(text: str) -> None:
    assert not deceives(text)


def test_a_character_is_described_by_number_and_name() -> None:
    assert describe("а") == "U+0430 CYRILLIC SMALL LETTER A"


@proves("GATE-ASK-13")
@pytest.mark.parametrize("letter", ["語", "\u0301", "é", "\u4dc0", "\u3248", "\u2460", "\u2630"])
def test_whatever_is_not_ascii_may_take_two_columns(letter: str) -> None:
    assert cells(letter) == 2
    assert cells("x") == 1
