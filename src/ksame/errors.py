"""Exceptions, warnings and the exit code that each one means.

Every error says what was expected, what was found and what to do next. The command line turns an error into its
exit code in one place; nothing else in the package prints or exits.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What ``ksame`` tells the shell."""

    DONE = 0
    FAILED = 1  # the output could not be written
    USAGE = 2
    WITHHELD = 3  # done, but some input was withheld or masked instead (named)
    NOT_MET = 4  # the guarantee does not hold; nothing was written
    UNREADABLE = 5
    MODEL_MISSING = 6
    INTERRUPTED = 130


class KsameError(Exception):
    """Base of every error that ksame raises on purpose."""

    exit_code = ExitCode.FAILED


class UsageError(KsameError, ValueError):
    """A parameter or a combination of parameters that cannot work."""

    exit_code = ExitCode.USAGE


class TooFewError(UsageError):
    """Fewer people than a method needs; in a series of releases they wait for the next one."""


class InputError(KsameError, ValueError):
    """Faces, labels or files that cannot be used as they are."""

    exit_code = ExitCode.UNREADABLE


class NotRegisteredError(InputError):
    """Pictures of several sizes without landmarks: faces have to be found in them first."""


class GuaranteeError(KsameError):
    """A promised property does not hold on what would be, or was, released."""

    exit_code = ExitCode.NOT_MET


class OutputError(KsameError):
    """The result could not be written; nothing stands under its final name."""

    exit_code = ExitCode.FAILED


class ModelError(KsameError):
    """A pretrained network is missing, damaged or cannot be run on this machine."""

    exit_code = ExitCode.MODEL_MISSING


class KsameWarning(UserWarning):
    """Something the user should know, with no bearing on privacy."""


class PrivacyWarning(KsameWarning):
    """Privacy is weaker than it could be. Always shown, and recorded in the certificate."""


def parameter_error(name: str, owner: str, expected: str, got: object) -> UsageError:
    """Return the one wording for a bad parameter.

    Examples
    --------
    >>> print(parameter_error("k", "KSame", "an integer in [2, n_subjects]", 1))
    The 'k' parameter of KSame must be an integer in [2, n_subjects]. Got 1.
    """
    return UsageError(f"The {name!r} parameter of {owner} must be {expected}. Got {got!r}.")
