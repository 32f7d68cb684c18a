"""`make audit`: known vulnerabilities in the locked versions, by pip-audit.

Without the network, or where the package index has no advisories, it says so and is no failure: a
checkout can be checked anywhere. A vulnerability is one.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements.lock"
TOOL: Final = "pip-audit>=2.9"
INSTALL_SECONDS: Final = 60
LOOK_SECONDS: Final = 60
PROBE_SECONDS: Final = 10
"""For one package. A network that answers nothing costs this much and no more."""


def main() -> int:
    """Print what is known; 1 when anything is."""
    found = _report(Path(sys.prefix, "audit"))
    code, said = verdict(found)
    print(f"audit: {said}", file=sys.stderr if code else sys.stdout)
    return code


def verdict(packages: "list[dict[str, Any]] | None") -> "tuple[int, str]":
    """The exit code and what to say of the packages in a report; None when there is none."""
    looked_at = [each for each in packages or () if "vulns" in each]
    if not looked_at:
        return 0, "skipped, because the advisories of the package index cannot be read from here"
    known = [
        f"{each['name']} {each['version']}: {found['id']}"
        f" (fixed in {', '.join(found['fix_versions']) or 'no version yet'})"
        for each in looked_at
        for found in each["vulns"]
    ]
    if known:
        return 1, "\n  ".join(["known vulnerabilities; raise the versions and `make lock`", *known])
    skipped = len(packages or ()) - len(looked_at)
    rest = f"; {skipped} could not be looked up" if skipped else ""
    return 0, f"no known vulnerability in {len(looked_at)} packages{rest}"


def _report(place: Path) -> "list[dict[str, Any]] | None":
    """What pip-audit says, from an environment of its own; None when it cannot say anything."""
    tool = place / "bin/pip-audit"
    try:
        if not tool.exists():
            _install(place)
        with tempfile.TemporaryDirectory() as folder:
            one = Path(folder, "one.txt")
            one.write_text(LOCK.read_text("utf-8").splitlines()[1] + "\n", "utf-8")
            if not [each for each in _look(tool, one, PROBE_SECONDS) if "vulns" in each]:
                return None
        return _look(tool, LOCK, LOOK_SECONDS)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None


def _install(place: Path) -> None:
    venv.create(place, with_pip=True)
    pip = ["install", "-q", "--disable-pip-version-check", "--retries", "0", "--timeout", "5", TOOL]
    subprocess.run(
        [place / "bin/pip", *pip], check=True, capture_output=True, timeout=INSTALL_SECONDS
    )


def _look(tool: Path, requirements: Path, seconds: float) -> "list[dict[str, Any]]":
    words = ["-r", str(requirements), "--no-deps", "--disable-pip", "-f", "json", "--timeout", "5"]
    done = subprocess.run(
        [tool, *words, "--progress-spinner", "off"],
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    packages = json.loads(done.stdout)["dependencies"]
    if not isinstance(packages, list):
        raise ValueError
    return packages


if __name__ == "__main__":
    sys.exit(main())
