"""The version of the package, and of what its results depend on."""

from __future__ import annotations

__version__ = "0.1.0"


def software(*packages: str) -> dict[str, str]:
    """Return the versions of ksame, of Python and of installed packages, for certificates and reports."""
    import platform
    from importlib.metadata import version

    return {
        "ksame": __version__,
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
    }
