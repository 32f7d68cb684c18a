"""What the owner sets for all runs."""

import pytest

from stringd.server.settings import RunsSettings, SettingsError, load_settings


def test_runs_are_guarded_sequential_and_free_in_their_models_by_default() -> None:
    found = load_settings({}).runs
    assert found == RunsSettings(catalog_url=found.catalog_url)


def test_the_owner_may_open_filters_and_choose_a_model() -> None:
    found = load_settings(
        {
            "STRINGD_TEMPLATE_FILTERS": "env, file",
            "STRINGD_CONCURRENT_BROADCAST": "1",
            "STRINGD_MODEL_OVERRIDE": "demo/echo",
        }
    ).runs
    assert found.template_filters == ("env", "file")
    assert found.concurrent_broadcast
    assert found.model_override == "demo/echo"


@pytest.mark.parametrize(
    ("name", "value"),
    [("STRINGD_TEMPLATE_FILTERS", "env,shell"), ("STRINGD_MODEL_OVERRIDE", "gpt")],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load_settings({name: value})
