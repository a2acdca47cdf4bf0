"""Exceptions, warnings and the exit code that each one means.

Every error says what was expected, what was found and what to do next. The command line turns an error into its
exit code in one place; nothing else in the package prints or exits.
"""

import math
from enum import IntEnum
from numbers import Integral, Real
from typing import cast

LARGEST_SEED = 2**63 - 1


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


def whole_number(name: str, owner: str, value: object, low: int, high: int | None = None) -> int:
    """Return a parameter as a Python integer, whatever integer type it came as, or raise the one wording.

    Examples
    --------
    >>> whole_number("k", "KSame", 3, 2)
    3
    >>> whole_number("k", "KSame", 2.5, 2)
    Traceback (most recent call last):
        ...
    ksame.errors.UsageError: The 'k' parameter of KSame must be an integer of at least 2. Got 2.5.
    """
    number = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if number is None or number < low or (high is not None and number > high):
        expected = f"of at least {low}" if high is None else f"in [{low}, {high}]"
        raise parameter_error(name, owner, f"an integer {expected}", value)
    return number


def real_number(
    name: str, owner: str, value: object, low: float, high: float, *, above: bool = False, below: bool = False
) -> float:
    """Return a parameter as a finite Python float in [low, high], or raise the one wording.

    ``above`` leaves ``low`` itself out, ``below`` leaves ``high`` out.

    Examples
    --------
    >>> real_number("epsilon", "EpsilonMap", float("nan"), 0, 1, above=True, below=True)
    Traceback (most recent call last):
        ...
    ksame.errors.UsageError: The 'epsilon' parameter of EpsilonMap must be a number in (0, 1). Got nan.
    """
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(cast(float, value))
    fits = (low < number if above else low <= number) and (number < high if below else number <= high)
    if not fits:  # NaN fits nowhere
        limits = f"{'(' if above else '['}{low:g}, {high:g}{')' if below else ']'}"
        raise parameter_error(name, owner, f"a number in {limits}", value)
    return number


def seed_number(owner: str, value: object) -> int:
    """Return a seed as a Python integer, or raise the one wording."""
    return whole_number("seed", owner, value, 0, LARGEST_SEED)
