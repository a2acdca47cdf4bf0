"""A key divided among officers: any m of n shares make it again, and m - 1 tell nothing of it (Shamir 1979).

Each byte of the key is the value at 0 of a random polynomial of degree m - 1 over GF(256); a share is the values at its
own number. The public key goes with every share, so that shares that do not belong together are noticed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ksame.errors import InputError, UsageError, whole_number
from ksame.files import write_atomic
from ksame.vault.keys import Identity

_MAX_SHARES = 255
_NUMBER = r"(\d{1,3})"
_LINE = re.compile(
    rf"KSAME-SHARE-1 {_NUMBER} {_NUMBER} {_NUMBER} (age1[0-9a-z]{{1,100}}) "
    r"((?:[0-9a-f]{2}){1,200}) ([0-9a-f]{16})"
)


def _tables() -> tuple[list[int], list[int]]:
    """Return powers and logarithms of the generator 3 of GF(256), modulo x^8 + x^4 + x^3 + x + 1."""
    powers, logs, value = [0] * 510, [0] * 256, 1
    for exponent in range(255):
        powers[exponent] = powers[exponent + 255] = value
        logs[value] = exponent
        value ^= (value << 1) ^ (0x11B if value & 0x80 else 0)
    return powers, logs


_POWERS, _LOGS = _tables()


def _times(a: int, b: int) -> int:
    return _POWERS[_LOGS[a] + _LOGS[b]] if a and b else 0


def _over(a: int, b: int) -> int:
    return _POWERS[_LOGS[a] + 255 - _LOGS[b]] if a else 0


@dataclass(frozen=True)
class Share:
    """One officer's share: ``needed`` of ``total`` make the key that belongs to ``recipient``."""

    needed: int
    total: int
    number: int
    recipient: str
    values: bytes = field(repr=False)

    def text(self) -> str:
        """Return the file of this share."""
        body = f"KSAME-SHARE-1 {self.needed} {self.total} {self.number} {self.recipient} {self.values.hex()}"
        return (
            f"# Share {self.number} of {self.total} of the key of {self.recipient}; any {self.needed} make the key.\n"
            f"# With {self.needed - 1} of them nothing is known of it. Keep it apart from the others.\n"
            f"{body} {_check(body)}\n"
        )

    def write(self, path: Path) -> None:
        """Write the share, readable by its owner only; a file that is there is never replaced."""
        write_atomic(path, self.text().encode(), private=True, replace=False)


def _check(body: str) -> str:
    return sha256(body.encode()).hexdigest()[:16]


def read_share(path: Path) -> Share:
    """Read the share in a file."""
    try:
        text = path.read_bytes()[: 1 << 16].decode("ascii", "replace")
    except OSError as error:
        raise InputError(f"{path}: the share cannot be read ({error.strerror}). Name the file of a share.") from error
    matches = [match for line in text.splitlines() if (match := _LINE.fullmatch(line.strip()))]
    if len(matches) != 1:
        raise InputError(f"{path}: expected a share of a key, a line KSAME-SHARE-1 …. Make some: ksame vault split.")
    needed, total, number, recipient, values, check = matches[0].groups()
    share = Share(int(needed), int(total), int(number), recipient, bytes.fromhex(values))
    body = matches[0].group(0).rpartition(" ")[0]
    if check != _check(body) or not 1 <= share.number <= share.total <= _MAX_SHARES or share.needed < 2:
        raise InputError(f"{path}: the share was changed or mistyped. Use the file that was written.")
    return share


def check_shares(needed: int, total: int) -> None:
    """Refuse numbers of shares that make no sense."""
    whole_number("needed", "split", needed, 2, whole_number("total", "split", total, 2, _MAX_SHARES))


def split(identity: Identity, needed: int, total: int) -> list[Share]:
    """Return ``total`` shares of a key, of which any ``needed`` make it again."""
    check_shares(needed, total)
    secret = identity.secret.encode()
    polynomials = [bytes([byte]) + secrets.token_bytes(needed - 1) for byte in secret]
    recipient = identity.recipient
    return [
        Share(needed, total, x, recipient, bytes(_value(polynomial, x) for polynomial in polynomials))
        for x in range(1, total + 1)
    ]


def _value(polynomial: bytes, x: int) -> int:
    """Return the value of a polynomial, lowest coefficient first, by Horner's rule."""
    value = 0
    for coefficient in reversed(polynomial):
        value = _times(value, x) ^ coefficient
    return value


def join(shares: Sequence[Share]) -> Identity:
    """Return the key that shares make.

    Raises UsageError when there are too few; InputError when they do not belong together.
    """
    if not shares:
        raise UsageError("Name the shares of a key.")
    kinds = {(share.needed, share.total, share.recipient, len(share.values)) for share in shares}
    if len(kinds) > 1:
        raise InputError("These are shares of different keys. Use shares that were made together.")
    distinct = {share.number: share for share in shares}
    if len(distinct) < len(shares):
        raise UsageError("One share is named twice. Name different ones.")
    first = shares[0]
    if len(shares) < first.needed:
        raise UsageError(f"{len(shares)} of the {first.needed} shares that are needed were given.")
    used = list(distinct.values())[: first.needed]
    weights = [_weight([share.number for share in used], share.number) for share in used]
    secret = bytearray(len(first.values))
    for share, weight in zip(used, weights, strict=True):
        for i, value in enumerate(share.values):
            secret[i] ^= _times(value, weight)
    try:
        identity = Identity(secret.decode("ascii"))
    except (InputError, UnicodeDecodeError):
        identity = None
    if identity is None or identity.recipient != first.recipient:
        raise InputError("These shares do not make the key. Use shares of one ksame vault split.")
    return identity


def _weight(numbers: Sequence[int], own: int) -> int:
    """Return Lagrange's weight at 0 of the share with a number."""
    weight = 1
    for other in numbers:
        if other != own:
            weight = _times(weight, _over(other, other ^ own))
    return weight
