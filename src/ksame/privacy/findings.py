"""Findings, and the checks that all certificates share: signature, files, links and empty folders."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ksame.errors import InputError
from ksame.files import sha256_of
from ksame.privacy.certificate import release_digest, signature_of
from ksame.privacy.documents import read_bytes
from ksame.privacy.rounding import DIGITS
from ksame.privacy.signing import signed_by

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SIGNED = "signature"
LINK, FOLDER, NO_FILE = "a link", "a folder", "not a plain file"
ODD = (LINK, FOLDER, NO_FILE)
"""Stand where a hash would: none of them is ever certified, and none is ever read."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``passed`` is None where it could not be judged."""

    name: str
    passed: bool | None
    detail: str


def passed(findings: Sequence[Finding]) -> bool:
    """Return whether nothing was found wrong."""
    return all(finding.passed is not False for finding in findings)


def conclusion(findings: Sequence[Finding]) -> str:
    """Return in one line what a reader may believe.

    Examples
    --------
    >>> conclusion([Finding("signature", None, "unsigned"), Finding("digest", True, "matches")])
    'consistent, but unsigned: anyone could have written it'
    """
    wrong = sum(finding.passed is False for finding in findings)
    if wrong:
        return f"not as certified: {wrong} of {len(findings)} checks failed"
    signature = next((finding for finding in findings if finding.name == SIGNED), None)
    if signature is not None and signature.passed:
        return "consistent, and signed with the key that was given"
    if signature is not None and signature.detail.startswith("not checked"):
        return "consistent, but its signature was not checked: anyone could have written it"
    return "consistent, but unsigned: anyone could have written it"


def check(name: str, wrong: Sequence[str], right: str) -> Finding:
    """Return a finding that passes where nothing is wrong; otherwise it tells the first things that are."""
    more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return Finding(name, not wrong, "; ".join(wrong[:3]) + more if wrong else right)


def broken(*rules: tuple[bool, str]) -> list[str]:
    """Return what is wrong: the words of every rule that does not hold.

    Examples
    --------
    >>> broken((True, "more people than faces"), (False, "no faces"))
    ['no faces']
    """
    return [words for holds, words in rules if not holds]


def differences(stated: Any, actual: Any, where: str = "") -> list[str]:
    """Return where a certificate differs from what was found; rounded numbers agree.

    Examples
    --------
    >>> differences({"loss": 0.12, "people": 9}, {"loss": 0.1234, "people": 8})
    ['people: 9 certified, 8 found']
    """
    if isinstance(stated, Mapping) and isinstance(actual, Mapping):
        names = sorted({*stated, *actual}, key=str)
        inner = [(stated.get(n, "nothing"), actual.get(n, "nothing"), f"{where}.{n}".strip(".")) for n in names]
        return [line for said, seen, place in inner for line in differences(said, seen, place)]
    return [] if agree(stated, actual) else [f"{where}: {_short(stated)} certified, {_short(actual)} found"]


def agree(stated: Any, actual: Any) -> bool:
    """Return whether a certified value is the actual one, or a measured number that was rounded to two digits or more.

    Examples
    --------
    >>> agree(0.12, 0.1234), agree(0.13, 0.1234), agree(0.2, 0.1234), agree(1200, 1234.5), agree(1200, 1234)
    (True, True, False, True, False)
    """
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (stated, actual)):
        return type(stated) is type(actual) and stated == actual
    if stated == actual or actual == 0 or not isinstance(actual, float):  # counts are never rounded
        return bool(stated == actual)
    try:
        unit = 10.0 ** (math.floor(math.log10(abs(actual))) + 1 - DIGITS)
        return bool(abs(stated - actual) <= unit * 1.001)
    except (OverflowError, ValueError):  # no finite number, or one that no float can hold
        return False


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def check_signature(certificate: Path, data: bytes, key: Ed25519PublicKey | None) -> Finding:
    """Judge the detached signature beside a certificate."""
    path = signature_of(certificate)
    if certificate.is_symlink() or path.is_symlink():
        return Finding(SIGNED, False, "the certificate or its signature is a link, which may change at any time")
    if key is None and path.exists():
        return Finding(SIGNED, None, "not checked: there is one, give the publisher's key with --key")
    if key is None:
        return Finding(SIGNED, None, "unsigned: a forgery cannot be told from the original")
    if not path.is_file():
        return Finding(SIGNED, False, "a key was given, but the certificate is not signed")
    good = signed_by(data, read_bytes(path, "the signature", plain=True), key)
    return Finding(SIGNED, good, "made with this key" if good else "not made with this key for this certificate")


def check_files(certified: Mapping[str, str], there: Mapping[str, str]) -> list[Finding]:
    """Compare certified hashes with what lies in a folder, see :func:`contents`."""
    around = {name[:i] for name in certified for i, letter in enumerate(name) if letter == "/"}
    added = {n for n in set(there) - set(certified) if not (there[n] == FOLDER and n in around)}
    changed = {n for n in set(there) & set(certified) if there[n] in ODD or there[n] != certified[n]}
    whole = "1 file as certified" if len(certified) == 1 else f"{len(certified)} files as certified"
    findings = []
    for what, names in (("missing", set(certified) - set(there)), ("added", added), ("changed", changed)):
        told = [f"{n} ({there[n]})" if there.get(n) in ODD else n for n in sorted(names)]
        listed = ", ".join(told[:5]) + (f" and {len(told) - 5} more" if len(told) > 5 else "")
        findings.append(Finding(f"no file {what}", not names, listed or whole))
    return findings


def check_digest(files: Mapping[str, str], digest: str) -> Finding:
    """Compare the hash of all files with the one that is certified."""
    good = release_digest(files) == digest
    return Finding("digest", good, "matches the list of files" if good else "does not match the list of files")


def contents(folder: Path, only: Sequence[str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, and for everything else what it is.

    With ``only``, of these entries of the folder and what is below them. Links, pipes and devices are not read.
    """
    kinds: dict[str, str] = {}
    try:
        names = os.listdir(folder)  # noqa: PTH208 -- names, not paths
        waiting = names if only is None else sorted(set(names) & set(only))
        while waiting:
            name = waiting.pop()
            path = folder / name
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                kinds[name] = FOLDER
                waiting += [f"{name}/{entry}" for entry in os.listdir(path)]  # noqa: PTH208
            elif stat.S_ISREG(mode):
                kinds[name] = sha256_of(path)
            else:
                kinds[name] = LINK if stat.S_ISLNK(mode) else NO_FILE
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be read ({error.strerror}).") from error
    return kinds
