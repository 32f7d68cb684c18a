"""Renew the page's vendored modules from the npm registry: `make vendor`.

Each file is copied as published, but for the names of modules it imports (a browser needs their
addresses, and the page's policy allows no import map), its source map, and style attributes that
are written as text, which the policy forbids. `manifest.json` says
where each came from; a test compares every file with it.
"""

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

VENDOR: Final = Path(__file__).parents[1] / "src" / "stringd" / "page" / "vendor"


class Module(NamedTuple):
    """A file of a package, and what it is called here."""

    package: str
    path: str
    name: str


MODULES: Final = (
    Module("preact", "dist/preact.mjs", "preact.js"),
    Module("preact", "hooks/dist/hooks.mjs", "hooks.js"),
    Module("htm", "dist/htm.mjs", "htm.js"),
    Module("@preact/signals-core", "dist/signals-core.mjs", "signals-core.js"),
    Module("@preact/signals", "dist/signals.mjs", "signals.js"),
    Module("marked", "lib/marked.esm.js", "marked.js"),
    Module("dompurify", "dist/purify.es.mjs", "purify.js"),
    Module("ansi_up", "ansi_up.js", "ansi_up.js"),
    Module("@xterm/xterm", "lib/xterm.mjs", "xterm.js"),
    Module("@xterm/xterm", "css/xterm.css", "xterm.css"),
)
_ADDRESSES: Final = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
}
_IMPORT: Final = re.compile(r"""(from\s*)(["'])([^"']+)\2""")
_STYLE: Final = re.compile(
    r"""(\w+)\.setAttribute\("style",`\$\{\1\.getAttribute\("style"\)\|\|""\}\$\{(\w+)\};`\)"""
)
_SOURCE_MAP: Final = re.compile(
    r"^(?://# sourceMappingURL=.*|/\*# sourceMappingURL=.*\*/)\n?", re.MULTILINE
)


def main() -> int:
    """Fetch every package at its newest version and write the files and their manifest."""
    VENDOR.mkdir(exist_ok=True)
    packages: dict[str, tarfile.TarFile] = {}
    written = []
    for module in MODULES:
        if module.package not in packages:
            print(f"fetching {module.package}", flush=True)
            packages[module.package] = _fetch(module.package)
        archive = packages[module.package]
        facts = json.loads(_read(archive, "package.json"))
        published = _read(archive, module.path)
        data = _for_browsers(published.decode("utf-8"))
        (VENDOR / module.name).write_text(data, "utf-8")
        written.append(
            {
                "file": module.name,
                "package": module.package,
                "version": facts["version"],
                "licence": facts["license"],
                "path": module.path,
                "published": hashlib.sha256(published).hexdigest(),
                "sha256": hashlib.sha256(data.encode()).hexdigest(),
            }
        )
    text = json.dumps(written, indent=2) + "\n"
    (VENDOR / "manifest.json").write_text(text, "utf-8")
    print(f"{len(written)} files in {VENDOR.relative_to(Path.cwd())}")
    return 0


def _fetch(package: str) -> tarfile.TarFile:
    with tempfile.TemporaryDirectory() as directory:
        command = ["npm", "pack", "--silent", "--pack-destination", directory, package]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        [packed] = Path(directory).iterdir()
        return tarfile.open(fileobj=io.BytesIO(packed.read_bytes()))


def _read(archive: tarfile.TarFile, path: str) -> bytes:
    member = archive.extractfile(f"package/{path}")
    assert member is not None
    return member.read()


def _for_browsers(text: str) -> str:
    def addressed(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}{_ADDRESSES.get(found[3], found[3])}{found[2]}"

    text = _STYLE.sub(r'\1.style.cssText+=\2+";"', text)
    return _SOURCE_MAP.sub("", _IMPORT.sub(addressed, text))


if __name__ == "__main__":
    sys.exit(main())
