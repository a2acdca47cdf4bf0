"""Examples for the help of every command; a test parses them all."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "deidentify": (
        "ksame deidentify party.jpg -o safe.jpg",
        "ksame deidentify interview.mp4 -o safe.mp4 --keep P2 --audio disguise",
        "ksame deidentify clips -o published --method fill --dry-run",
        "ksame deidentify --config job.toml",
    ),
    "people": (
        "ksame people interview.mp4 -o people.png",
        "ksame people clips --json",
    ),
    "release": (
        "ksame release faces -o published -k 5",
        "ksame release faces -o published -m k-same-m -k 10 --link-table link.json",
        "ksame release synthetic:60 -o trial -k 5 --audit report.html",
    ),
    "verify": (
        "ksame verify published",
        "ksame verify safe.mp4 --linkage link.json",
    ),
    "audit": (
        "ksame audit originals published -o report.html",
        "ksame audit originals published -o report.html --json",
    ),
    "reproduce": ("ksame reproduce newton2005 -o results",),
    "methods": (
        "ksame methods",
        "ksame methods --json",
    ),
    "vault": (
        "ksame vault keygen -o key.txt",
        "ksame vault list case.age",
        "ksame vault open case.age safe.mp4 --person P3 --identity key.txt -o restored.mkv",
    ),
    "live": (
        "ksame live 0 -o http://127.0.0.1:8089",
        "ksame live rtsp://192.168.1.20/door -o door/ --segment 60",
        "ksame live 0 -o camera:/dev/video2",
        "ksame live film.mp4 -o segments --json",
    ),
    "studio": ("ksame studio projects",),
    "models": (
        "ksame models list",
        "ksame models verify",
    ),
    "bench": ("ksame bench --json",),
    "demo": ("ksame demo -o demo",),
}
"""By command: lines that can be typed."""


def epilog(name: str) -> str:
    """Return the examples of a command for the end of its help."""
    return "\n\n".join(["[bold]Examples[/]", *(f"  {line}" for line in EXAMPLES[name])])
