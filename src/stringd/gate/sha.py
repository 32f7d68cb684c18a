"""SHA-256 for short texts, from Python's own code: OpenSSL's library takes four megabytes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha256 import sha256
    except ImportError:
        # Another Python keeps it elsewhere.
        from hashlib import sha256

__all__ = ["sha256"]
