"""`python docs/api.py`: writes docs/api.md, the public names of the package."""

import inspect
import sys
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).with_name("api.md")
MODULES = (
    "stringd",
    "stringd.client",
    "stringd.library",
    "stringd.testing",
    "stringd.extend",
    "stringd.documents",
    "stringd.wire.chanflow",
)
INTRODUCTION = """# Python API

Everything listed here is public: it changes only with a note in the
[changelog](../CHANGELOG.md). Every other module and name of the package is private and may change
at any time. [Clients](clients.md) and [Agents in Python](library.md) explain by example;
`python docs/api.py` makes this page from the docstrings.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(_module(name) for name in MODULES)])


def _module(name: str) -> str:
    module = import_module(name)
    summary = _paragraph(module)
    rows = [_entry(name, each, getattr(module, each)) for each in sorted(module.__all__)]
    return "\n".join([f"## `{name}`\n", f"{summary}\n", *rows])


def _entry(module: str, name: str, value: object) -> str:
    documented = isinstance(value, type) or inspect.isroutine(value)
    about = _paragraph(value) if documented else f"A value of type `{type(value).__name__}`."
    text = f"### `{module}.{name}`\n\n{about}\n"
    if isinstance(value, type) and module != "stringd":
        text += "".join(_method(each, method) for each, method in _methods(value))
    return text


def _methods(owner: type) -> list[tuple[str, object]]:
    """The public methods a class or its own bases define, with a docstring."""
    found = inspect.getmembers(owner, lambda each: inspect.isfunction(each) or _is_property(each))
    return [
        (name, each)
        for name, each in found
        if not name.startswith("_")
        and inspect.getdoc(each)
        and _module_of(each).startswith("stringd")
    ]


def _is_property(value: object) -> bool:
    return isinstance(value, property)


def _module_of(value: object) -> str:
    function = value.fget if isinstance(value, property) else value
    return str(getattr(function, "__module__", ""))


def _method(name: str, value: object) -> str:
    shown = name if isinstance(value, property) else f"{name}{_arguments(value)}"
    return f"\n- `{shown}`: {_paragraph(value)}\n"


def _arguments(function: object) -> str:
    if not callable(function):
        return ""
    names = []
    for each in inspect.signature(function).parameters.values():
        if each.name == "self":
            continue
        star = "*" if each.kind == each.VAR_POSITIONAL else ""
        star = "**" if each.kind == each.VAR_KEYWORD else star
        names.append(f"{star}{each.name}" + ("" if each.default is each.empty else "=…"))
    return f"({', '.join(names)})"


def _paragraph(value: object) -> str:
    text = inspect.getdoc(value) or ""
    return " ".join(text.partition("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")
