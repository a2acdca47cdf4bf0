"""A real Chromium, without a window, that talks to nobody."""

import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=2000",
]

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium on PATH; install it with: apt-get install chromium"
)


def browse(page: Path, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open a page and return what was printed; ``folder`` is for the browser's own files."""
    profile = f"--user-data-dir={folder / 'profile'}"
    return subprocess.run(
        [BROWSER, *FLAGS, profile, *flags, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
