"""Link tables in a vault, and opening all that a key can open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ksame.errors import InputError, UsageError
from ksame.privacy.linkage import LinkTable
from ksame.vault.container import LINK_TABLE, Sealed, Vault, wrap, write_vault
from ksame.vault.keys import Identity, Recipients, new_identity


def seal_table(path: Path, table: LinkTable, files: Mapping[str, str], recipients: Recipients) -> str:
    """Write a vault that holds the link table of released files, and return its root."""
    identity = new_identity()
    data = table.model_dump_json(by_alias=True, indent=1).encode() + b"\n"
    record = Sealed.of("record", Recipients((identity.recipient,)).seal(data))
    return write_vault(path, [wrap(identity, LINK_TABLE, recipients), record], files, len(recipients.names))


def open_table(vault: Vault, identity: Identity, note: str = "") -> tuple[bytes, str]:
    """Log that the link table is opened, and return it and the head of the log."""
    keys = vault.keys(identity)
    if LINK_TABLE not in keys:
        raise UsageError(f"{vault.path} holds no link table. Name --person, and the released file.")
    vault = vault.noted(action="open", people=(), key=identity.recipient, note=note)
    record = vault.record(keys[LINK_TABLE])
    if record is None:
        raise InputError(f"{vault.path}: its link table is gone. Use the copy that was written.")
    return record[1], vault.log.head


def open_everything(vault: Vault, identity: Identity) -> tuple[int, int]:
    """Open all that is sealed, in memory, and throw it away; return how many keys there are and what they opened.

    Raises InputError when a key is a wrong one, or a piece cannot be opened by any of the keys.
    """
    keys = list(vault.keys(identity).values())
    numbers = [*vault.numbers("record"), *vault.numbers("film")]
    for number in numbers:
        data, layers = vault.sealed(number), 0
        while data.startswith(b"age-encryption.org/v1\n"):
            data, layers = _peeled(vault, number, data, keys), layers + 1
        if not layers:
            raise InputError(f"{vault.path}: piece {number + 1} is not sealed. Use the copy that was written.")
    return len(keys), len(numbers)


def _peeled(vault: Vault, number: int, data: bytes, keys: list[Identity]) -> bytes:
    for key in keys:
        try:
            return key.open(data)
        except InputError:
            continue
    raise InputError(f"{vault.path}: piece {number + 1} opens with none of its keys. Use the copy that was written.")
