"""A question that browsers may answer: once, and in its time."""

import pytest

from stringd.gate.passkeys.open_question import MAX_FAILURES, OpenQuestion, OpenQuestions
from stringd.gate.passkeys.passkey import PasskeyError
from tests.gate.test_question import PLAIN, TANGLED
from tests.requirements import proves


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@proves("GATE-KEY-06")
def test_only_the_first_answer_counts() -> None:
    with OpenQuestions().open(PLAIN, 60) as offer:
        offer.approve("laptop")
        assert offer.answered.is_set
        with pytest.raises(PasskeyError, match="no longer open"):
            offer.approve("other")
        assert offer.close() == "laptop"
    with OpenQuestions().open(PLAIN, 60) as offer:
        assert offer.close() is None
        with pytest.raises(PasskeyError, match="no longer open"):
            offer.approve("laptop")


@proves("GATE-KEY-06")
def test_its_time_is_that_of_the_question() -> None:
    clock = Clock()
    offer = OpenQuestion(PLAIN, 60, clock)
    clock.now = 59.9
    offer.check()
    clock.now = 60.0
    with pytest.raises(PasskeyError, match="no longer open"):
        offer.approve("laptop")
    offer.answered.close()


@proves("GATE-KEY-04")
def test_guessing_has_an_end() -> None:
    with OpenQuestions().open(PLAIN, 60) as offer:
        for _ in range(MAX_FAILURES):
            offer.check()
            offer.failed()
        with pytest.raises(PasskeyError, match="at the terminal"):
            offer.approve("laptop")


@proves("GATE-KEY-06")
def test_a_question_is_open_only_while_it_is_asked() -> None:
    offers = OpenQuestions()
    assert offers.wait("", 0) is None
    with offers.open(PLAIN, 60) as offer:
        assert offers.wait("", 0) is offers.get(offer.number) is offer
        with pytest.raises(PasskeyError):
            offers.get("another")
    assert offers.wait(offer.number, 0) is None
    with pytest.raises(PasskeyError):
        offers.get(offer.number)


@proves("GATE-KEY-04")
def test_browsers_get_all_of_it_as_visible_text() -> None:
    with OpenQuestions().open(TANGLED, 60) as offer:
        text = "\n".join("".join(piece for piece, _ in row) for row in offer.rows)
        assert "(agent forwarded)" in text
        assert "install.sh | bash -s -- --yes && echo done" in text.replace(" \\\n", "")
        assert "$'\\x09шrm'" in text
        assert offer.asks == "Execute?"
