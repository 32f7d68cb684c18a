"""A loaded strategy can be written back."""

from pathlib import Path

from stringd.runs.strategy.export import export_json, export_yaml
from stringd.runs.strategy.load import Known, load_strategy
from tests.runs.support import sequential, strategy


def test_what_is_exported_loads_to_the_same_strategy(tmp_path: Path) -> None:
    source = strategy(sequential("ä"), ä={"model": "demo/echo"})
    first = tmp_path / "a.yaml"
    first.write_text(export_yaml_of(source), "utf-8")
    loaded = load_strategy(first, Known())
    again = tmp_path / "b.json"
    again.write_text(export_json(loaded), "utf-8")
    assert load_strategy(again, Known()).source == source
    assert list(loaded.source) == ["name", "version", "agents", "flow"]
    assert "ä" in export_yaml(loaded)


def export_yaml_of(source: dict[str, object]) -> str:
    import yaml

    text: str = yaml.safe_dump(source, sort_keys=False, allow_unicode=True)
    return text
