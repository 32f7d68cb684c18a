"""Checks what an authenticator signed. The only module that loads the WebAuthn library.

`webauthn` is an extra: a gate without a passkey neither has nor needs it.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

from stringd.gate.passkeys.passkey import Passkey, PasskeyError, from_base64url

RELYING_PARTY: Final = "localhost"
"""Browsers take a name here, never an address: a page at 127.0.0.1 cannot use a passkey."""
MISSING: Final = "passkeys need one more package: pip install 'stringd[passkeys]'"


def is_available() -> bool:
    """Whether the library is there, without loading it."""
    return find_spec("webauthn") is not None


def verify_registration(
    credential: Mapping[str, Any], challenge: bytes, origin: str, name: str, added: str
) -> Passkey:
    """The passkey a browser made for this challenge, its user verified. Raises `PasskeyError`."""
    webauthn = _library()
    _refuse_frames(credential)
    try:
        made = webauthn.verify_registration_response(
            credential=json.dumps(credential),
            expected_challenge=challenge,
            expected_rp_id=RELYING_PARTY,
            expected_origin=origin,
            require_user_verification=True,
        )
    except Exception as error:  # noqa: BLE001  whatever it trips over, it is not a passkey
        raise PasskeyError(f"this is not a passkey for this gate: {error}") from None
    return Passkey(name, made.credential_id, made.credential_public_key, made.sign_count, added)


def verify_approval(
    credential: Mapping[str, Any],
    challenge: bytes,
    origin: str,
    passkeys: Mapping[bytes, Passkey],
) -> Passkey:
    """The passkey that signed this challenge, its counter moved on. Raises `PasskeyError`."""
    webauthn = _library()
    number = credential.get("rawId")
    passkey = passkeys.get(from_base64url(number)) if isinstance(number, str) else None
    if passkey is None:
        raise PasskeyError("this passkey is not registered at this gate")
    _refuse_frames(credential)
    try:
        checked = webauthn.verify_authentication_response(
            credential=json.dumps(credential),
            expected_challenge=challenge,
            expected_rp_id=RELYING_PARTY,
            expected_origin=origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except Exception as error:  # noqa: BLE001  whatever it trips over, it is not an approval
        raise PasskeyError(f"this does not approve anything: {error}") from None
    if not checked.user_verified:
        raise PasskeyError("this does not approve anything: its user was not verified")
    return replace(passkey, sign_count=checked.new_sign_count)


def _library() -> Any:
    try:
        import webauthn  # a tenth of a second and 25 MiB: when somebody uses a passkey
    except ImportError:
        raise PasskeyError(MISSING) from None
    return webauthn


def _refuse_frames(credential: Mapping[str, Any]) -> None:
    """What another page shows inside itself may be covered by it."""
    response = credential.get("response")
    text = response.get("clientDataJSON") if isinstance(response, Mapping) else None
    try:
        data = json.loads(from_base64url(text if isinstance(text, str) else ""))
    except (ValueError, RecursionError):
        raise PasskeyError("what the browser sent is not complete") from None
    if not isinstance(data, dict) or data.get("crossOrigin") or "topOrigin" in data:
        raise PasskeyError("the page was shown inside another one")
