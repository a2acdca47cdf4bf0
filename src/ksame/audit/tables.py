"""The tables a user may give: which picture belongs to which, and what pictures show."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from ksame.errors import InputError


@dataclass(frozen=True)
class Labels:
    """Rows of a label table by file."""

    rows: Mapping[str, Mapping[str, str]]
    path: Path

    def row(self, name: str) -> Mapping[str, str] | None:
        """Return the row of a picture: by its whole name, else by its last part where only one row ends so."""
        if name in self.rows:
            return self.rows[name]
        last = name.rsplit("/", 1)[-1]
        same = [file for file in self.rows if file.rsplit("/", 1)[-1] == last]
        return self.rows[same[0]] if len(same) == 1 else None


def read_labels(path: Path) -> Labels:
    """Read a table with the column ``file``, and any of ``subject`` and labels."""
    rows: dict[str, Mapping[str, str]] = {}
    for line, row in _rows(path, ("file",)):
        if row["file"] in rows:
            raise InputError(f"{path}, line {line}: {row['file']} is listed twice.")
        rows[row["file"]] = row
    return Labels(rows, path)


def read_pairs(path: Path, originals: Set[str], released: Set[str]) -> list[tuple[str, str]]:
    """Read a table with the columns ``original`` and ``released``; every name must be there, no released one twice."""
    pairs = []
    seen: set[str] = set()
    for line, row in _rows(path, ("original", "released")):
        first, second = row["original"], row["released"]
        for name, names, side in ((first, originals, "original"), (second, released, "released")):
            if name not in names:
                raise InputError(f"{path}, line {line}: there is no {side} picture {name!r}.")
        if second in seen:
            raise InputError(
                f"{path}, line {line}: {second} is listed twice; a released picture stands for one original."
            )
        seen.add(second)
        pairs.append((first, second))
    return pairs


def _rows(path: Path, needed: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.DictReader(handle, restkey="", restval="", strict=True)
            rows = [(reader.line_num, {str(k).strip(): str(v).strip() for k, v in row.items() if k}) for row in reader]
            columns = [str(column).strip() for column in reader.fieldnames or ()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: the table cannot be read ({error}).") from error
    missing = [name for name in needed if name not in columns]
    if missing:
        raise InputError(f"{path}: missing column(s) {', '.join(missing)}; found {', '.join(columns) or 'nothing'}.")
    if not rows:
        raise InputError(f"{path}: no rows. Expected the columns {', '.join(needed)} and one row for each picture.")
    for line, row in rows:
        empty = [name for name in needed if not row[name]]
        if empty:
            raise InputError(f"{path}, line {line}: the column {empty[0]} is empty.")
    return rows
