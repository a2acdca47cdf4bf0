"""``ksame studio``: a page on this machine, for this machine alone."""

from __future__ import annotations

import socket
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Annotated

import typer

from ksame.app import talk
from ksame.errors import UsageError, real_number

_HOST = "127.0.0.1"
_MAX_GIGABYTES = 1000


@talk.guarded
def studio_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where projects are kept; made where it is not there.")
    ] = Path("ksame-studio"),
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; any that is free by default.", min=0, max=65535)] = 0,
    max_upload: Annotated[
        float, typer.Option(help=f"Gigabytes that one uploaded file may have, up to {_MAX_GIGABYTES}.")
    ] = 4.0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> None:
    """Review and release in the browser, on this machine alone.

    The page is served on 127.0.0.1 to whoever has the address that is printed, and asks no other machine for
    anything. Projects lie in FOLDER, with copies of the originals; delete them on the page, or delete the folder.
    """
    real_number("max_upload", "studio", max_upload, 0, _MAX_GIGABYTES, above=True)
    try:
        import uvicorn

        from ksame.studio.api import create_app
    except ImportError as error:
        raise UsageError(f"The studio needs {error.name}: pip install 'ksame[studio]'.") from error
    from ksame.studio.security import Access

    with socket.socket() as listener:
        try:
            listener.bind((_HOST, port))
            listener.listen()  # whoever comes before the server is ready waits
        except OSError as error:
            raise UsageError(f"Port {port} cannot be used ({error.strerror}). Choose another.") from error
        port = listener.getsockname()[1]
        shown = "" if port == 80 else f":{port}"  # browsers leave this one out
        access = Access((f"{_HOST}{shown}", f"localhost{shown}"), int(max_upload * 1e9))
        app = create_app(folder, access)
        address = f"http://{_HOST}{shown}/?token={access.token}"
        talk.say(f"ksame studio  {address}\nProjects are kept in {folder.absolute()}. Stop with Ctrl-C.")
        if open_page:
            Timer(0.5, webbrowser.open, [address]).start()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False, date_header=False))
        with suppress(KeyboardInterrupt):  # how it is stopped
            server.run(sockets=[listener])
