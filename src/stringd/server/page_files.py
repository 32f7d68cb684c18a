"""`/ui/`: the page's own files, with the headers that keep everything else out of it."""

import gzip
import hashlib
import mimetypes
import secrets
from pathlib import Path
from typing import Final, NamedTuple

from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse

PREFIX: Final = "/ui/"
ASSETS: Final = "/ui/static/"
FILES: Final = Path(__file__).parents[1] / "page"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
STYLES: Final = "style-src 'self'"
NONCE: Final = b"NONCE"
"""Where the document holds what lets its own scripts add styles: new with each answer."""
_POLICY: Final = f"Content-Security-Policy: {POLICY}\r\n".encode("ascii")
_SAFETY: Final = (
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
).encode("ascii")

_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


class _File(NamedTuple):
    stamp: tuple[int, int]
    type: str
    data: bytes
    packed: bytes
    tag: bytes


class PageFiles:
    """Serves what the package ships; a file is read again only when it has changed."""

    def __init__(self, directory: Path = FILES) -> None:
        self._directory = directory
        self._files: dict[str, _File] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """A file of the page; every other address below `/ui/` is a view of it."""
        if request.method not in ("GET", "HEAD"):
            raise HttpError(405, f"{request.path} can only be read")
        if not request.path.startswith(ASSETS):
            return self._document(request)
        return self._answer(request, request.path.removeprefix(ASSETS))

    def _document(self, request: HttpRequest) -> HttpResponse:
        found = self._find("index.html")
        if found is None:
            raise HttpError(404, f"Not found: {request.method} {request.path}")
        nonce = secrets.token_urlsafe(16)
        allowed = f"{STYLES} 'nonce-{nonce}'".encode("ascii")
        head = b"Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n"
        head += _POLICY.replace(STYLES.encode("ascii"), allowed) + _SAFETY
        return HttpResponse(200, head, found.data.replace(NONCE, nonce.encode("ascii")))

    def _answer(self, request: HttpRequest, name: str) -> HttpResponse:
        found = self._find(name)
        if found is None:
            raise HttpError(404, f"Not found: {request.method} {request.path}")
        head = b"Content-Type: %b; charset=utf-8\r\nCache-Control: no-cache\r\nETag: %b\r\n%b" % (
            found.type.encode("ascii"),
            found.tag,
            _POLICY + _SAFETY,
        )
        if request.headers.get(b"if-none-match") == found.tag:
            return HttpResponse(304, head, b"")
        if b"gzip" in request.headers.get(b"accept-encoding", b""):
            return HttpResponse(
                200, head + b"Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n", found.packed
            )
        return HttpResponse(200, head, found.data)

    def _find(self, name: str) -> _File | None:
        parts = name.split("/")
        # Names we give files: anything else, `..` and links out included, is not one of them.
        if not all(part and part[0].isalnum() and ".." not in part for part in parts):
            return None
        suffix = Path(name).suffix
        kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0]
        if kind is None or suffix == ".py":
            return None
        path = self._directory.joinpath(*parts)
        try:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            known = self._files.get(name)
            if known is not None and known.stamp == stamp:
                return known
            data = path.read_bytes()
        except OSError:
            return None
        tag = b'"%b"' % hashlib.sha256(data).hexdigest()[:20].encode("ascii")
        made = _File(stamp, kind, data, gzip.compress(data, 6, mtime=0), tag)
        self._files[name] = made
        return made


def wants_page(request: HttpRequest) -> bool:
    """Whether a browser that shows pages asks for `/`."""
    return b"text/html" in request.headers.get(b"accept", b"")


def to_page() -> HttpResponse:
    """Send a browser to the page."""
    return HttpResponse(302, b"Location: /ui/\r\nCache-Control: no-cache\r\n", b"")
