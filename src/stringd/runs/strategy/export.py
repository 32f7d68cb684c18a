"""A strategy written back as it was: its validated source, with no defaults filled in."""

import json

import yaml

from stringd.runs.strategy.definition import Strategy


def export_json(strategy: Strategy) -> str:
    """The strategy as JSON, indented by two."""
    return json.dumps(strategy.source, indent=2, ensure_ascii=False) + "\n"


def export_yaml(strategy: Strategy) -> str:
    """The strategy as YAML, keys in the author's order."""
    text: str = yaml.safe_dump(dict(strategy.source), sort_keys=False, allow_unicode=True)
    return text
