"""Asking the ledger of this machine about a release that was made, see :mod:`ksame.privacy.ledger`."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from ksame.errors import PrivacyWarning
from ksame.faces.faceset import FaceSet
from ksame.privacy.ledger import Ledger
from ksame.privacy.linkage import Linkage
from ksame.privacy.models import KAnonymity
from ksame.privacy.release import Release


def compared(release: Release, linkage: Linkage, faces: FaceSet, after: Linkage | None) -> Release:
    """Warn where pictures are in a release that this one does not continue, and let these be remembered.

    Only pictures that a face stands for count: who waits was not released.
    """
    shown = {source for face in linkage.faces for source in face.sources}
    ours = faces.take(np.isin(faces.names, list(shown))) if shown & set(faces.names) else None
    if ours is None:  # of a series whose people have all left
        return release
    ledger = Ledger()
    try:
        prints = ledger.prints(ours)
    except OSError as error:
        warnings.warn(f"This release could not be remembered ({error}).", PrivacyWarning, stacklevel=3)
        return release
    if release.certificate.promise.model == KAnonymity.name:
        known = frozenset() if after is None else after.people
        new = [one for one, subject in zip(prints, ours.subjects, strict=True) if str(subject) not in known]
        seen = ledger.earlier(new, release.certificate.digest)
        if seen:
            note = (
                f"{seen} of {len(faces)} pictures are part of an earlier release made on this machine. If both are "
                "published, their groups can be intersected; continue the earlier release with --after LINKAGE."
            )
            warnings.warn(note, PrivacyWarning, stacklevel=3)
            release = release.noted(note)
    return replace(release, prints=prints)
