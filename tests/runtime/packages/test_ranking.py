"""Which apps some words mean."""

from stringd.runtime.packages.ranking import ActionSummary, AppSummary, ranked, stems


def _app(name: str, about: str = "", **actions: str) -> AppSummary:
    listed = tuple(ActionSummary(ident, text) for ident, text in actions.items())
    return AppSummary(f"app:{name}", about, listed)


APPS = [
    _app("tracker", "Issues of the project", search="", createIssue="", close_issue=""),
    _app("mail", "Letters, read and sent", inbox="", send="Send a letter"),
    _app("notes", "Pages with comments", create_page="", search_notes="Look in all issues"),
]


def _labels(wanted: str) -> list[str]:
    return [each.app.name for each in ranked(APPS, wanted)]


def test_the_app_whose_action_has_all_the_words_comes_first() -> None:
    best = ranked(APPS, "create an issue")[0]
    assert best.app.name == "tracker"
    assert best.actions[0].id == "createIssue"
    assert best.meant == 1


def test_a_name_counts_more_than_a_description() -> None:
    apps = [_app("letters", "Made with mail"), _app("mail", "Made with paper")]
    assert [each.app.name for each in ranked(apps, "mail")] == ["mail", "letters"]


def test_plurals_and_beginnings_are_forgiven() -> None:
    assert _labels("letter") == ["mail"]
    assert _labels("trackers") == ["tracker"]
    assert _labels("comm") == ["notes"]


def test_an_app_that_shares_only_a_small_word_is_not_meant() -> None:
    assert _labels("send the letter") == ["mail"]


def test_words_that_no_app_has_find_nothing() -> None:
    assert _labels("weather") == []
    assert _labels("!?") == []
    assert ranked([], "issue") == []


def test_names_fall_apart_into_words() -> None:
    assert stems("createIssue list_HTTPFiles2") == {"create", "issue", "list", "http", "file", "2"}
