"""Examples for the help of every command; a test parses them all."""

from __future__ import annotations

_LINES = """\
ksame deidentify party.jpg -o safe.jpg
ksame deidentify interview.mp4 -o safe.mp4 --keep P2 --audio disguise
ksame deidentify clips -o published --method fill --dry-run
ksame deidentify --config job.toml
ksame people interview.mp4 -o people.png
ksame people clips --json
ksame release faces -o published -m k-same-m -k 5
ksame release faces -o published -m k-same-m -k 10 --link-table link.json
ksame release synthetic:60 -o trial -m k-same-m -k 5 --audit report.html
ksame verify published
ksame verify safe.mp4 --linkage link.json
ksame audit originals published -o report.html
ksame audit originals published -o report.html --json
ksame reproduce newton2005 -o results
ksame methods
ksame methods --json
ksame vault keygen -o key.txt
ksame vault list case.age
ksame vault open case.age safe.mp4 --person P3 --identity key.txt -o restored.mkv
ksame live 0 -o http://127.0.0.1:8089
ksame live rtsp://192.168.1.20/door -o door/ --segment 60
ksame live 0 -o camera:/dev/video2
ksame live film.mp4 -o segments --json
ksame studio projects
ksame models list
ksame models verify
ksame bench --json
ksame demo -o demo
"""

EXAMPLES: dict[str, list[str]] = {}
"""By command: lines that can be typed."""
for _line in _LINES.splitlines():
    EXAMPLES.setdefault(_line.split()[1], []).append(_line)


def epilog(name: str) -> str:
    """Return the examples of a command for the end of its help."""
    return "\n\n".join(["[bold]Examples[/]", *(f"  {line}" for line in EXAMPLES[name])])
