"""Ed25519 signatures: they make a certificate authentic, where hashes alone only make it consistent."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING

from ksame.errors import InputError
from ksame.faces.reading import StrPath

if TYPE_CHECKING:  # loaded where keys are used: most runs sign nothing
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_HOW = "make one with: openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out key.pub"


def load_private_key(path: StrPath) -> Ed25519PrivateKey:
    """Read an unencrypted PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(Path(path).read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path}: not a readable private key ({error}); {_HOW}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{path}: not an Ed25519 key; {_HOW}")
    return key


def load_public_key(path: StrPath) -> Ed25519PublicKey:
    """Read a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(Path(path).read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"{path}: not a readable public key ({error}); {_HOW}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path}: not an Ed25519 key; {_HOW}")
    return key


def sign(data: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return the signature file of ``data``: one line of base64."""
    return base64.b64encode(key.sign(data)) + b"\n"


def signed_by(data: bytes, signature: bytes, key: Ed25519PublicKey) -> bool:
    """Return whether ``signature`` was made for exactly these bytes with that key."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(base64.b64decode(signature.strip(), validate=True), data)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True
