"""``--manifest``: the command ``ksame deidentify`` in a file."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ksame.errors import InputError, UsageError
from ksame.scene.manifest import Manifest, require_new

if TYPE_CHECKING:
    from ksame.app.deidentify import DeidentifyCommand

_PATHS = ("boxes", "tracks", "review", "link_table", "vault", "sign")
_EVERY_TIME = ("force", "scheduler", "workers", "device", "as_json", "resume", "dry_run")
"""What may be given with a manifest that is there: how it is run this time, not what is done."""


def with_manifest(options: DeidentifyCommand) -> tuple[DeidentifyCommand, dict[str, Any]]:
    """Return the options with those of the manifest, where one is named; and what a new one is to say of them."""
    if options.manifest is None:
        return options, {}
    given = {field.name: value for field in fields(options) if (value := getattr(options, field.name)) != field.default}
    given.pop("manifest")
    given.pop("config", None)
    if set(given) <= set(_EVERY_TIME):
        return _read(options, given), {}
    require_new(options.manifest)
    if not options.media or options.output is None:
        raise UsageError(f"{options.manifest} is not there. To write it, name MEDIA and -o OUTPUT too.")
    said = {name: value for name, value in given.items() if name not in ("media", "output", *_EVERY_TIME)}
    said |= {name: _absolute(value) for name, value in said.items() if name in _PATHS}
    media, output = list(map(_absolute, options.media)), _absolute(options.output)
    return replace(options, media=media, output=output), said


def _read(options: DeidentifyCommand, given: dict[str, Any]) -> DeidentifyCommand:
    path = options.manifest
    if path is None or not path.exists():
        raise InputError(f"{path}: there is no such manifest. To write it, name MEDIA and -o OUTPUT too.")
    manifest = Manifest.read(path)
    hints = get_type_hints(type(options))
    said: dict[str, Any] = {}
    for name, value in manifest.options.items():
        if name not in hints or name in ("media", "output", "manifest", "config", *_EVERY_TIME):
            raise InputError(f"{path}: {name!r} is no option of ksame deidentify that a manifest can have.")
        try:
            said[name] = TypeAdapter(hints[name]).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            raise InputError(f"{path}: the option {name!r} cannot be {value!r}.") from error
    said |= {"media": list(manifest.media), "output": manifest.output, "resume": True}
    return replace(options, **{**said, **given, "resume": True})


def _absolute(text: str | Path) -> str:
    """Return a path from anywhere; a slash at its end says that it is a folder."""
    slash = "/" if str(text).endswith("/") else ""
    return str(text) if "://" in str(text) else f"{Path(text).absolute()}{slash}"
