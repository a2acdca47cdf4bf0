"""A key for each person of a job, and for its link table."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from ksame.vault import Entry, Recipients, Sealed, new_identity
from ksame.vault.container import LINK_TABLE, wrap


def new_keys(people: Iterable[str], recipients: Recipients) -> dict[str, dict[str, Any]]:
    """Make a key for each person and for the link table, and wrap it at once.

    Returned is, for JSON, the public key and the secret one wrapped for the recipients: all that is kept of it.
    """
    keys = {}
    for name in (LINK_TABLE, *people):
        identity = new_identity()
        wrapped = wrap(identity, name, recipients)
        keys[name] = {
            "recipient": identity.recipient,
            "entry": wrapped.entry.model_dump(),
            "wrapped": b64encode(wrapped.read()).decode(),
        }
    return keys


def stored_wrap(key: Mapping[str, Any]) -> Sealed:
    """Return the wrapped key among what :func:`new_keys` returned."""
    return Sealed(Entry(**key["entry"]), b64decode(key["wrapped"]))
