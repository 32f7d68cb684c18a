"""How replies name files and directories."""

from pathlib import Path


def display(home: str, path: Path) -> str:
    """A path as replies show it: relative to home when inside it, else absolute."""
    shown, root = str(path), home.rstrip("/")
    if shown == (root or "/"):
        return "."
    return shown.removeprefix(f"{root}/")


def display_directory(home: str, path: Path | None) -> str:
    """A directory as `/info` shows it; None means home."""
    shown = "." if path is None else display(home, path)
    if shown == ".":
        return "~/"
    return f"{shown}/" if shown.startswith("/") else f"~/{shown}/"
