"""What is promised, and what is published."""

from ksame.privacy.certificate import Certificate
from ksame.privacy.linkage import Linkage
from ksame.privacy.maps import EpsilonKMap, EpsilonMap, WrongMap, ZeroRecognition
from ksame.privacy.models import Bound, Evidence, KAnonymity, NoGuarantee, PrivacyModel, Violation
from ksame.privacy.release import Release, read_release, write_release

__all__ = [
    "Bound",
    "Certificate",
    "EpsilonKMap",
    "EpsilonMap",
    "Evidence",
    "KAnonymity",
    "Linkage",
    "NoGuarantee",
    "PrivacyModel",
    "Release",
    "Violation",
    "WrongMap",
    "ZeroRecognition",
    "read_release",
    "write_release",
]
