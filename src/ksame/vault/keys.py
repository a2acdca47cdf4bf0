"""Keys of age, and sealing with them: an identity opens what was sealed for its recipient.

Files of identities are those that ``age-keygen`` writes. A secret is never part of a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ksame.errors import InputError, UsageError
from ksame.files import write_atomic

_SECRET = "AGE-SECRET-KEY-1"  # noqa: S105 -- how such a line begins
_KEYGEN = "make one with: ksame vault keygen -o key.txt"
_MAX_FILE = 1 << 16  # bytes of a file of identities: more is something else


def _age() -> Any:
    import pyrage  # loaded where something is sealed or opened: most runs do neither

    return pyrage


@dataclass(frozen=True)
class Recipients:
    """For whom something is sealed: any one of them can open it. ``names`` are public keys, ``age1…``."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise UsageError(f"A vault needs a --recipient who can open it, age1…; {_KEYGEN}.")
        if len(set(self.names)) != len(self.names):
            raise UsageError("A --recipient is named twice. Name each once.")
        self._keys()

    def _keys(self) -> list[Any]:
        age, keys = _age(), []
        for name in self.names:
            try:
                keys.append(age.x25519.Recipient.from_str(name))
            except (age.RecipientError, UnicodeEncodeError) as error:
                shown = "a secret key" if name.upper().startswith(_SECRET[:10]) else repr(name[:80])
                raise UsageError(
                    f"A --recipient must be the public key of an age identity, age1…. Got {shown} ({error}); {_KEYGEN}."
                ) from None
        return keys

    def seal(self, data: bytes) -> bytes:
        """Return an age file that each of the recipients can open."""
        return bytes(_age().encrypt(data, self._keys()))


@dataclass(frozen=True)
class Identity:
    """A secret key of age."""

    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        self._key()

    def _key(self) -> Any:
        age = _age()
        try:
            return age.x25519.Identity.from_str(self.secret)
        except age.IdentityError:
            raise InputError(f"Not a secret key of age; {_KEYGEN}.") from None

    @property
    def recipient(self) -> str:
        """The public key."""
        return str(self._key().to_public())

    def open(self, data: bytes) -> bytes:
        """Return what was sealed.

        Raises InputError when it was sealed for somebody else, or is not as it was sealed.
        """
        age = _age()
        try:
            return bytes(age.decrypt(data, [self._key()]))
        except age.DecryptError as error:
            other = "No matching" in str(error)
            raise InputError(
                "It was sealed for other recipients than this key." if other else "It was changed after it was sealed."
            ) from None


def new_identity() -> Identity:
    """Return a new secret key."""
    return Identity(str(_age().x25519.Identity.generate()))


def identity_file(identity: Identity, about: Sequence[str] = ()) -> bytes:
    """Return a file that age takes for ``-i``, with remarks in it."""
    remarks = [*about, f"public key: {identity.recipient}"]
    return ("".join(f"# {line}\n" for line in remarks) + identity.secret + "\n").encode()


def write_identity(path: Path, identity: Identity) -> None:
    """Write a secret key, readable by its owner only; a file that is there is never replaced."""
    write_atomic(path, identity_file(identity), private=True, replace=False)


def load_identity(path: Path) -> Identity:
    """Read the only secret key in a file."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE)
    except OSError as error:
        raise InputError(f"{path}: the key cannot be read ({error.strerror}). Name the file of an identity.") from error
    return identity_in(data, str(path))


def identity_in(data: bytes, name: str) -> Identity:
    """Return the only secret key among the lines of a file."""
    lines = [line.strip() for line in data.decode("ascii", "replace").splitlines()]
    keys = [line for line in lines if line.startswith(_SECRET)]
    if len(keys) != 1:
        count = "none" if not keys else f"{len(keys)}"
        raise InputError(f"{name}: expected one secret key of age, a line AGE-SECRET-KEY-1…, found {count}; {_KEYGEN}.")
    try:
        return Identity(keys[0])
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
