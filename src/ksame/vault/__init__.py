"""The vault: what would undo a release, sealed for whoever may open it, in the format of *age*.

``Vault`` is the file, ``keys`` are those of age, ``shares`` divide a key among officers, ``log`` tells of all openings.
Nothing here knows what is sealed.
"""

from ksame.vault.container import Sealed, Vault, write_vault
from ksame.vault.index import Entry
from ksame.vault.keys import Identity, Recipients, load_identity, new_identity, write_identity
from ksame.vault.log import OpeningLog
from ksame.vault.shares import join, read_share, split

__all__ = [
    "Entry",
    "Identity",
    "OpeningLog",
    "Recipients",
    "Sealed",
    "Vault",
    "join",
    "load_identity",
    "new_identity",
    "read_share",
    "split",
    "write_identity",
    "write_vault",
]
