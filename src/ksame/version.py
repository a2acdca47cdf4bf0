"""The version of the package, and of what its results depend on."""

from __future__ import annotations

from contextlib import suppress

__version__ = "0.2.0.dev4"


def software(*packages: str) -> dict[str, str]:
    """Return the versions of ksame, Python and those packages that are installed, for certificates and reports."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    installed = {}
    for name in packages:
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return {"ksame": __version__, **installed, "python": platform.python_version()}
