"""`python -m bench [name …]`: measure, and print one table a room."""

import sys
from importlib import import_module
from pathlib import Path

from bench.table import markdown

HELPERS = {
    "__init__",
    "__main__",
    "arms",
    "arms_table",
    "ask_model",
    "floods",
    "floor_exec",
    "hostile_ways",
    "probed_daemon",
    "servers",
    "table",
}


def main(wanted: list[str]) -> int:
    here = Path(__file__).parent
    known = sorted(path.stem for path in here.glob("*.py") if path.stem not in HELPERS)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"bench: unknown {', '.join(unknown)}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in wanted or known:
        module = import_module(f"bench.{name}")
        print(markdown(module.TITLE, module.rows()), flush=True)
        if hasattr(module, "more"):
            print(module.more(), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
