"""JSON files that anybody may have written: one meaning, or an error that says what is wrong."""

import os
from typing import ClassVar, Literal

import pytest
from pydantic import Field

from ksame.errors import InputError
from ksame.privacy.documents import Document, read_any, read_bytes, read_document, schema_of


class Note(Document):
    expected: ClassVar[str] = "a note"
    schema_: Literal["note"] = Field("note", alias="schema")
    version: Literal[1] = 1
    marks: dict[str, float] = Field(default_factory=dict)


class Letter(Document):
    expected: ClassVar[str] = "a letter"
    schema_: Literal["letter"] = Field("letter", alias="schema")
    version: Literal[1, 2] = 2


def test_what_fits_is_read():
    assert read_document(Note, b'{"schema": "note", "marks": {"a": 1.5, "b": 2}}', "a note").marks == {"a": 1.5, "b": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"^not a note \(the file: Invalid JSON"),
        (b"[]", r"^not a note \(the file: Input should be an object"),
        (b'{"schema": "other"}', r"^not a note \(schema: Input should be 'note'\)$"),
        (b'{"schema": "note", "marks": {"a": "x"}}', r"^not a note \(marks\.a: "),
        (b'{"schema": "note", "more": 1}', r"^not a note \(more: Extra inputs"),
        (b'{"schema": "note", "marks": {"a": NaN}}', r"^not a note \(marks\.a: Input should be a finite number\)$"),
        (b'{"schema": "note", "marks": {"a": 1e999}}', "^not a note "),
        (b'{"schema": "note", "schema": "note"}', r"^not a note \('schema' is said twice\)$"),
        (b'{"schema": "note", "marks": {"a": 1, "b": 2, "b": 3}}', r"^not a note \('b' is said twice\)$"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(text, message):
    with pytest.raises(InputError, match=message):
        read_document(Note, text, "a note")


@pytest.mark.parametrize(("number", "message"), [("NaN", "NaN is no number"), ("1e999", "1e999 is too large a number")])
def test_numbers_that_are_none_are_refused_where_the_schema_looks_away(number, message):
    with pytest.raises(InputError, match=rf"^not a note \({message}\)$"):
        schema_of(f'{{"schema": "note", "deep": [{number}]}}'.encode(), "a note")
    assert schema_of(b'{"schema": "note", "deep": [1e99]}', "a note") == "note"


def test_long_foreign_text_is_cut():
    name = "n" * 999
    with pytest.raises(InputError) as error:
        read_document(Note, f'{{"schema": "note", "{name}": 1}}'.encode(), "a note")
    assert str(error.value).startswith(f"not a note ({'n' * 200}: Extra")
    with pytest.raises(InputError) as error:
        read_document(Note, f'{{"schema": "note", "marks": {{"{name}": 1, "{name}": 1}}}}'.encode(), "a note")
    assert str(error.value) == f"not a note ('{'n' * 200}')"[: len("not a note (") + 200] + ")"


def test_a_document_is_read_as_what_it_names():
    assert isinstance(read_any(b'{"schema": "letter"}', Note, Letter), Letter)
    assert isinstance(read_any(b'{"schema": "note"}', Note, Letter), Note)
    with pytest.raises(InputError, match="^not a letter .version"):
        read_any(b'{"schema": "letter", "version": 3}', Note, Letter)
    with pytest.raises(InputError, match="^not a note .schema"):
        read_any(b'{"schema": "card"}', Note, Letter)


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "good").write_bytes(b"yes")
    assert read_bytes(tmp_path / "good", "the note", plain=True) == b"yes"
    with pytest.raises(InputError, match=r"gone: the note cannot be read \(No such file or directory\)\.$"):
        read_bytes(tmp_path / "gone", "the note", plain=True)
    with pytest.raises(InputError, match=r"the note cannot be read \(Is a directory\)\.$"):
        read_bytes(tmp_path, "the note")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"pipe: the note cannot be read \(not a plain file\)\.$"):
        read_bytes(tmp_path / "pipe", "the note", plain=True)
    with pytest.raises(InputError, match=r"^'a\\x00b': the note cannot be read \(embedded null byte\)\.$"):
        read_bytes(type(tmp_path)("a\0b"), "the note")
