"""Build what is published, twice, and try it where nothing of this checkout is.

Publishing itself is a person's decision: RELEASING.md says how.
"""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
BUNDLE = ROOT / "plugins/mcpb"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "release", "version": "1"},
    },
}


def main() -> int:
    """Build, compare, check, install and try."""
    with tempfile.TemporaryDirectory(prefix="stringd-release-") as scratch:
        place = Path(scratch)
        tools = _environment(place / "tools", "build", "twine", "cyclonedx-bom>=7")
        first, second = (_build(tools, place / name) for name in ("first", "second"))
        if _digests(first) != _digests(second):
            print("release: two builds of the same commit differ", file=sys.stderr)
            return 1
        artifacts = sorted(map(str, first.iterdir()))
        subprocess.run([tools, "-m", "twine", "check", "--strict", *artifacts], check=True)
        wheel = next(first.glob("*.whl"))
        python = _try_wheel(wheel, place)
        _bundle(first / f"{wheel.name.split('-py3')[0]}.mcpb")
        _bill_of_materials(tools, python, first / "sbom.cdx.json")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(first, DIST)
    for name, digest in _digests(DIST).items():
        print(f"{digest}  dist/{name}")
    return 0


def _environment(place: Path, *packages: str) -> Path:
    """The Python of a new environment with these packages and nothing else."""
    venv.create(place, with_pip=True)
    python = place / "bin/python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
    return python


def _build(tools: Path, place: Path) -> Path:
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    settings = {**os.environ, "SOURCE_DATE_EPOCH": done.stdout.strip()}
    command: list[str | Path] = [tools, "-m", "build", "--outdir", place, ROOT]
    subprocess.run(command, env=settings, check=True, stdout=subprocess.DEVNULL)
    return place


def _bundle(path: Path) -> None:
    """What desktop clients install: the same files give the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(BUNDLE.iterdir()):
            member = zipfile.ZipInfo(file.name)
            member.external_attr = 0o644 << 16
            archive.writestr(member, file.read_bytes(), zipfile.ZIP_DEFLATED)


def _bill_of_materials(tools: Path, python: Path, path: Path) -> None:
    """Everything that the wheel brings along, as CycloneDX."""
    words = ["environment", "--output-reproducible", "--of", "JSON", "-o", str(path), str(python)]
    subprocess.run([tools.parent / "cyclonedx-py", *words], check=True, capture_output=True)
    # Where it was built is nobody's business, and differs from one build to the next.
    text = path.read_text("utf-8").replace(f"{path.parent.as_uri()}/", "")
    path.write_text(text, "utf-8")


def _digests(place: Path) -> dict[str, str]:
    files = sorted(place.iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _try_wheel(wheel: Path, place: Path) -> Path:
    """What a person does first, with only the wheel; its Python. Raises `CalledProcessError`."""
    python = _environment(place / "empty", str(wheel))
    stringd = python.parent / "stringd"
    home = place / "home"
    home.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
    settings = {**inherited, "HOME": str(home), "STRINGD_PORT": port}

    def run(*command: str | Path, stdin: str = "") -> str:
        done = subprocess.run(
            command, env=settings, cwd=home, input=stdin, text=True, capture_output=True, check=True
        )
        return done.stdout

    print(run(stringd, "--version"), end="")
    print(run(python.parent / "st", "--version"), end="")
    try:
        run(stringd, "doctor")
        answer = json.loads(run(stringd, "mcp", stdin=json.dumps(INITIALIZE) + "\n").split("\n")[0])
        print(f"MCP server: {answer['result']['serverInfo']}")
    finally:
        run(stringd, "down")
    return python


if __name__ == "__main__":
    sys.exit(main())
