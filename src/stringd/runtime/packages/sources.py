"""Packages from the web: a document with its pages, an archive, a manifest, a GitHub directory."""

import asyncio
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from stringd.documents import Document, parse
from stringd.documents.addresses import joined
from stringd.net.fetch import Fetched, FetchError, FetchRequest
from stringd.runtime.packages.archives import archive_stem, is_archive, unpack
from stringd.runtime.packages.install import InstallError, check_paths
from stringd.runtime.packages.installed import MAIN_FILE
from stringd.runtime.packages.linked_pages import linked_pages
from stringd.runtime.topics.permission import connection_judges

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call

ACCEPT: Final = "application/json, text/markdown, text/plain"
MAX_FILES: Final = 500
_FETCH_SECONDS: Final = 60.0
_SHORT_FORM: Final = re.compile(r"gh:([\w.-]+)/([\w.-]+)(/[^@]*)?(?:@(.+))?")
_WEB_FORM: Final = re.compile(
    r"https://(?:www\.)?github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?"
    r"(?:/(tree|blob)/([^/]+)(?:/(.*))?)?"
)


class Fetchable(NamedTuple):
    """A package on the web, fetched. `link` says that the address itself is to be registered."""

    document: Document
    files: Mapping[str, bytes]
    file_name: str
    link: bool = False
    missing: tuple[str, ...] = ()
    """Pages that its documents link to and that could not be fetched."""


class GitHubPath(NamedTuple):
    """A place in a repository; an empty ref is its default branch."""

    owner: str
    repo: str
    path: str
    ref: str
    is_file: bool

    @property
    def shown(self) -> str:
        return "/".join(filter(None, [self.owner, self.repo, self.path]))


def github_path(source: str) -> GitHubPath | None:
    """What a GitHub source names; None when it is none."""
    short = _SHORT_FORM.fullmatch(source)
    if short is not None:
        path = (short[3] or "").strip("/")
        return GitHubPath(short[1], short[2], path, short[4] or "", path.endswith(".md"))
    web = _WEB_FORM.fullmatch(source)
    if web is None:
        return None
    return GitHubPath(web[1], web[2], (web[5] or "").strip("/"), web[4] or "", web[3] == "blob")


async def fetch_web(call: "Call", url: str, *, alone: bool = False) -> Fetchable:
    """A document with the pages it links to, an archive or a manifest. Raises `InstallError`.

    `alone` leaves the pages where they are.
    """
    answer = await _get(call, url, {"Accept": ACCEPT})
    if is_archive(answer.body):
        return await unpacked(answer.body, url, archive_stem(_last_part(url)))
    manifest = _manifest(answer)
    if manifest is not None:
        return await _from_manifest(call, answer, manifest)
    found = Fetchable(parse(answer.text(), url), {MAIN_FILE: answer.body}, _file_name(url))
    return found if alone else await _with_pages(call, found, answer)


async def unpacked(data: bytes, shown: str, file_name: str) -> Fetchable:
    """The package in an archive. Raises `InstallError`."""
    files = await asyncio.to_thread(unpack, data, shown)
    document = parse(files[MAIN_FILE].decode("utf-8", "replace"))
    return Fetchable(document, files, file_name)


async def _with_pages(call: "Call", found: Fetchable, answer: Fetched) -> Fetchable:
    async def get(url: str) -> bytes:
        return (await _get(call, url, {"Accept": ACCEPT}, may_be_private=not answer.public)).body

    pages = await linked_pages(answer.body, answer.url, get, found.files)
    return found._replace(files={**pages.files, **found.files}, missing=pages.missing)


def _file_name(url: str) -> str:
    """What the file at an address is called; the host where that says nothing."""
    name = _last_part(url).partition(".")[0]
    return name if name not in ("", "string", "index") else urlsplit(url).hostname or ""


def _last_part(url: str) -> str:
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


async def fetch_github(call: "Call", place: GitHubPath) -> Fetchable:
    """The top-level files of a GitHub directory, or one file. Raises `InstallError`."""
    listed = await _contents(call, place)
    if isinstance(listed, dict):
        answer = await _download(call, listed)
        stem = place.path.rpartition("/")[2].rpartition(".")[0]
        document = parse(answer.body.decode("utf-8", "replace"))
        return await _with_pages(call, Fetchable(document, {MAIN_FILE: answer.body}, stem), answer)
    entries = {str(entry.get("name")): entry for entry in listed if entry.get("type") == "file"}
    if MAIN_FILE not in entries:
        names = ", ".join(str(entry.get("name")) for entry in listed) or "nothing"
        raise InstallError(f"No {MAIN_FILE} in {place.shown}. Found: {names}")
    check_paths(list(entries))
    visible = {name: entry for name, entry in entries.items() if not name.startswith(".")}
    answers = {name: await _download(call, each) for name, each in visible.items()}
    main = answers[MAIN_FILE]
    document = parse(main.body.decode("utf-8", "replace"))
    found = Fetchable(
        document,
        {name: answer.body for name, answer in answers.items()},
        place.path.rpartition("/")[2] or place.repo,
    )
    # The list ends with this folder; pages below it are found by their links.
    return await _with_pages(call, found, main)


async def _contents(call: "Call", place: GitHubPath) -> dict[str, object] | list[dict[str, object]]:
    """GitHub's own description of a file or a directory. Raises `InstallError`."""
    api = call.services.settings.github_api.rstrip("/")
    url = f"{api}/repos/{place.owner}/{place.repo}/contents/{quote(place.path)}"
    if place.ref:
        url = f"{url}?ref={quote(place.ref, safe='')}"
    headers = {"Accept": "application/vnd.github+json"}
    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    answer = await _fetch(call, url, headers)
    if answer.status == 403:
        raise InstallError(
            f"GitHub refused to list {place.shown} (HTTP 403), probably for too many requests.\n"
            "Set GITHUB_TOKEN in the daemon's environment and try again."
        )
    _check(answer, f"github.com/{place.shown}")
    try:
        found = msgspec.json.decode(answer.body)
    except msgspec.DecodeError as error:
        raise InstallError(f"GitHub's answer for {place.shown} is not JSON.") from error
    if isinstance(found, dict):
        return found
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


async def _download(call: "Call", entry: Mapping[str, object]) -> Fetched:
    return await _get(call, str(entry.get("download_url")), {"Accept": "*/*"})


async def _from_manifest(call: "Call", answer: Fetched, manifest: dict[str, object]) -> Fetchable:
    listed = manifest["files"]
    assert isinstance(listed, list)
    entries = {str(each.get("path")): each for each in listed if isinstance(each, dict)}
    check_paths(list(entries))
    if MAIN_FILE not in entries:
        names = ", ".join(list(entries)[:5]) or "none"
        raise InstallError(
            f'Manifest at {answer.url} is missing a "{MAIN_FILE}" entry in files[]. '
            f"Declared: {names}",
            "LOAD_ERROR",
        )
    if len(entries) > MAX_FILES:
        raise InstallError(f"Manifest at {answer.url} lists more than {MAX_FILES} files.")
    link = manifest.get("delivery") == "link"
    wanted = [MAIN_FILE] if link else list(entries)
    files = {name: await _entry(call, answer, entries[name]) for name in wanted}
    document = parse(files[MAIN_FILE].decode("utf-8", "replace"))
    return Fetchable(document, files, _file_name(answer.url), link)


async def _entry(call: "Call", manifest: Fetched, entry: Mapping[str, object]) -> bytes:
    content = entry.get("content")
    if isinstance(content, str):
        return content.encode()
    if not isinstance(entry.get("url"), str):
        name = entry.get("path")
        raise InstallError(f'"{name}" of the manifest at {manifest.url} has no url and no content.')
    url = joined(manifest.url, str(entry["url"]))
    return (await _get(call, url, {"Accept": "*/*"}, may_be_private=not manifest.public)).body


def _manifest(answer: Fetched) -> dict[str, object] | None:
    if not answer.body.lstrip().startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("files"), list) else None


async def _get(
    call: "Call", url: str, headers: Mapping[str, str], *, may_be_private: bool = True
) -> Fetched:
    answer = await _fetch(call, url, headers, may_be_private=may_be_private)
    _check(answer, url)
    return answer


async def _fetch(
    call: "Call", url: str, headers: Mapping[str, str], *, may_be_private: bool = True
) -> Fetched:
    request = FetchRequest(
        "GET",
        url,
        headers,
        timeout=_FETCH_SECONDS,
        may_be_private=may_be_private,
        judges=connection_judges(call.caller.permission),
    )
    try:
        answer = await call.services.fetcher.fetch(request)
    except FetchError as error:
        raise InstallError(f"Cannot fetch {url}: {error}") from error
    if answer.truncated:
        raise InstallError(f"Cannot fetch {url}: it is larger than {len(answer.body)} bytes")
    return answer


def _check(answer: Fetched, shown: str) -> None:
    if not 200 <= answer.status < 300:
        raise InstallError(f"Cannot fetch {shown}: HTTP {answer.status}")
