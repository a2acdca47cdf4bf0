"""The studio over HTTP: projects, uploads, people, previews, jobs and downloads, typed and described by OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, Depends, FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from ksame.errors import KsameError, OutputError, UsageError
from ksame.files import make_folder
from ksame.studio import looking
from ksame.studio.choices import offered
from ksame.studio.commands import check
from ksame.studio.jobs import Jobs
from ksame.studio.looking import Looker
from ksame.studio.projects import TRACKS, UNDO, BusyError, GoneError, Projects
from ksame.studio.security import Access, Guard
from ksame.studio.state import (
    Action,
    Change,
    Choices,
    Correction,
    FaceBox,
    Job,
    NewProject,
    PersonView,
    Problem,
    Project,
    ProjectView,
    Role,
    StoredFile,
)
from ksame.version import __version__

_JPEG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/jpeg": {"schema": {"type": "string"}}}}}
_ANY: dict[int | str, dict[str, Any]] = {200: {"content": {"*/*": {"schema": {"type": "string"}}}}}
_Id = Annotated[str, InPath(pattern=r"^[0-9a-f]{16}$", description="Of a project.")]
_Int = Annotated[int, InPath(ge=0, le=1 << 30)]
_REPORT = "sandbox allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
_STATUS: tuple[tuple[type[Exception], int], ...] = ((GoneError, 404), (BusyError, 409), (OutputError, 409))
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in (
        (400, "What was sent is not what it says it is."),
        (401, "Without the token, or the cookie that it becomes."),
        (403, "Another site asks."),
        (404, "There is no such project, file, frame or job."),
        (409, "A job is running, or the disk is gone or full."),
        (413, "Too large."),
        (422, "What was asked cannot be."),
    )
}


class Studio:
    """What the requests share."""

    def __init__(self, root: Path) -> None:
        self.projects = Projects(root)
        self.jobs = Jobs(self.projects)
        self.looker = Looker()

    def view(self, project: Project) -> ProjectView:
        """Return a project as the browser sees it."""
        folder = self.projects.folder(project.id)
        return ProjectView(
            project=project,
            folder=str(folder),
            found=self.projects.found(project.id),
            undo=len(list((folder / UNDO).glob("*"))),
            jobs=self.jobs.all(project.id),
        )

    def take(self, project: str, file: StoredFile) -> None:
        """Make an upload part of its project; where a job has begun meanwhile, it is deleted again."""
        try:
            with self.jobs.idle(project):
                self.projects.add(project, file)
        except BusyError:
            (self.projects.folder(project) / file.role / file.stored_as).unlink(missing_ok=True)
            raise

    def file(self, project: str, number: int) -> tuple[Project, StoredFile]:
        """Return a file of a project."""
        current = self.projects.get(project)
        for file in current.files:
            if file.number == number and file.role == "media":
                return current, file
        raise GoneError(f"There is no picture or recording {number} in this project.")


def _studio(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


_Shared = Annotated[Studio, Depends(_studio)]


def create_app(root: Path, access: Access) -> FastAPI:
    """Return the application for the projects in a folder."""
    studio = Studio(root)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        studio.jobs.stop()
        studio.looker.stop()

    app = FastAPI(
        title="ksame studio",
        version=__version__,
        description="Jobs of the command line, for the browser. Programs send `Authorization: Bearer TOKEN`.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    app.state.studio, app.state.access = studio, access
    app.add_exception_handler(KsameError, _problem)
    app.add_exception_handler(ClientDisconnect, _problem)
    app.add_exception_handler(OSError, _disk)
    app.add_exception_handler(RequestValidationError, _misfit)
    _add_projects(app)
    _add_people(app)
    _add_jobs(app)
    static = Path(str(files("ksame.studio") / "static"))
    app.get("/", include_in_schema=False)(lambda: FileResponse(static / "index.html"))
    app.mount("/static", StaticFiles(directory=static))
    app.add_middleware(Guard, access=access)
    return app


async def _problem(request: Request, error: Exception) -> Response:
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
    return JSONResponse({"detail": str(error)}, status)


async def _disk(request: Request, error: Exception) -> Response:
    said = getattr(error, "strerror", None) or "an error"
    return JSONResponse({"detail": f"The disk does not do what it should ({said}). Is it full, or gone?"}, 409)


async def _misfit(request: Request, error: Exception) -> Response:
    """Say what does not fit the description, without repeating what was sent."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    where = (".".join(str(part)[:60] for part in each["loc"][1:]) for each in errors)
    said = "; ".join(f"{place}: {each['msg']}" for place, each in zip(where, errors, strict=True))
    return JSONResponse({"detail": said[:2000]}, 422)


def _add_projects(app: FastAPI) -> None:
    @app.get("/api/choices", responses=_ERRORS)
    def choices(request: Request) -> Choices:
        """Return methods, covers, sounds and attackers, in the words of the registries."""
        return offered(request.app.state.access.max_upload)

    @app.get("/api/projects", responses=_ERRORS)
    def projects(studio: _Shared) -> list[Project]:
        """List the projects, the newest first."""
        return studio.projects.all()

    @app.post("/api/projects", status_code=201, responses=_ERRORS)
    def create(studio: _Shared, new: NewProject) -> ProjectView:
        """Begin a project."""
        return studio.view(studio.projects.create(new.name, new.kind))

    @app.get("/api/projects/{project}", responses=_ERRORS)
    def view(studio: _Shared, project: _Id) -> ProjectView:
        """Return a project with its files and jobs."""
        return studio.view(studio.projects.get(project))

    @app.patch("/api/projects/{project}", responses=_ERRORS)
    def change(studio: _Shared, project: _Id, change: Change) -> ProjectView:
        """Change its name, settings or what becomes of people."""
        changes = {name: getattr(change, name) for name in change.model_fields_set if getattr(change, name) is not None}
        with studio.jobs.idle(project) as current:
            check(current.model_copy(update=changes))
            return studio.view(studio.projects.change(project, **changes))

    @app.delete("/api/projects/{project}", status_code=204, responses=_ERRORS)
    def delete(studio: _Shared, project: _Id) -> None:
        """Delete a project, its originals and everything made of them; its jobs are cancelled."""
        studio.jobs.stop(project)
        studio.projects.delete(project)

    @app.post(
        "/api/projects/{project}/files",
        status_code=201,
        responses=_ERRORS,
        openapi_extra={"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}},
    )
    async def upload(
        studio: _Shared,
        request: Request,
        project: _Id,
        name: Annotated[str, Query(min_length=1, max_length=1000, description="To be shown; never used on disk.")],
        role: Annotated[Role, Query()],
    ) -> StoredFile:
        """Upload one file: the body is the file."""
        studio.jobs.require_idle(project)
        async with contextmanager_in_threadpool(studio.projects.receive(project, name, role)) as (file, part, stream):
            async for block in request.stream():
                await run_in_threadpool(stream.write, block)
            await run_in_threadpool(stream.close)
            file = await run_in_threadpool(studio.looker.ask, looking.probe, file, part)
        await run_in_threadpool(studio.take, project, file)
        return file

    @app.delete("/api/projects/{project}/files", status_code=204, responses=_ERRORS)
    def remove_all(studio: _Shared, project: _Id) -> None:
        """Delete all originals, and what was found in them; what jobs wrote stays."""
        with studio.jobs.idle(project):
            studio.projects.remove(project)

    @app.delete("/api/projects/{project}/files/{number}", status_code=204, responses=_ERRORS)
    def remove(studio: _Shared, project: _Id, number: _Int, role: Annotated[Role, Query()]) -> None:
        """Delete an original, and what was found in all of them."""
        with studio.jobs.idle(project):
            studio.projects.remove(project, role, number)


def _add_people(app: FastAPI) -> None:
    @app.get("/api/projects/{project}/people", responses=_ERRORS)
    def people(studio: _Shared, project: _Id) -> tuple[PersonView, ...]:
        """Return everyone who was found, with a timeline of each track."""
        current = studio.projects.get(project)
        if not studio.projects.found(project):
            return ()
        return studio.looker.ask(looking.people, studio.projects.folder(project), current.files)

    @app.post("/api/projects/{project}/corrections", responses=_ERRORS)
    def correct(studio: _Shared, project: _Id, wanted: Annotated[Correction, Body()]) -> ProjectView:
        """Merge people, split a track, draw a box, throw a track away, or take the last of these back."""
        with studio.jobs.idle(project) as current:
            names = studio.looker.ask(looking.correct, studio.projects.folder(project), current.files, wanted)
            wishes = {name: wish for name, wish in current.wishes.items() if name in names}
            another = tuple(name for name in current.another if name in names)
            return studio.view(studio.projects.change(project, wishes=wishes, another=another))

    @app.get(
        "/api/projects/{project}/files/{number}/thumbs/{track}/{frame}",
        responses=_ERRORS | _JPEG,
        response_class=Response,
    )
    def thumb(studio: _Shared, project: _Id, number: _Int, track: _Int, frame: _Int) -> FileResponse:
        """Return a picture of a face."""
        path = looking.thumb(studio.projects.folder(project), number, track, frame)
        if not path.is_file():
            raise GoneError("There is no such picture.")
        return FileResponse(path, media_type="image/jpeg")

    @app.get("/api/projects/{project}/files/{number}/frames/{frame}/faces", responses=_ERRORS)
    def faces(studio: _Shared, project: _Id, number: _Int, frame: _Int) -> tuple[FaceBox, ...]:
        """Return where faces are in a frame."""
        _, file = studio.file(project, number)
        return studio.looker.ask(looking.faces_in, studio.projects.folder(project), file, frame)

    @app.get(
        "/api/projects/{project}/files/{number}/frames/{frame}/before",
        responses=_ERRORS | _JPEG,
        response_class=Response,
    )
    def before(studio: _Shared, project: _Id, number: _Int, frame: _Int) -> Response:
        """Return a frame as it is."""
        _, file = studio.file(project, number)
        shown = studio.looker.ask(looking.frame, studio.projects.folder(project), file, frame)
        return Response(shown, media_type="image/jpeg")

    @app.get(
        "/api/projects/{project}/files/{number}/frames/{frame}/after",
        responses=_ERRORS | _JPEG,
        response_class=Response,
    )
    def after(studio: _Shared, project: _Id, number: _Int, frame: _Int) -> Response:
        """Return what becomes of a frame with the settings as they are."""
        current, file = studio.file(project, number)
        studio.jobs.require_idle(project)
        shown = studio.looker.ask(looking.frame_after, studio.projects.folder(project), current, file, frame)
        return Response(shown, media_type="image/jpeg")


def _add_jobs(app: FastAPI) -> None:
    @app.post("/api/projects/{project}/jobs", status_code=201, responses=_ERRORS)
    def start(
        studio: _Shared,
        project: _Id,
        action: Annotated[Action, Query()],
        source: Annotated[int | None, Query(ge=0, le=1 << 30, description="The job that is audited.")] = None,
    ) -> Job:
        """Look for people, run, or audit what a job wrote."""
        with studio.jobs.idle(project) as current:
            check(current)
            if source is not None:
                studio.jobs.get(project, source)
            if action == "find":
                current = studio.projects.forget(project)
                make_folder(studio.projects.folder(project) / TRACKS)
            elif current.kind == "scene" and not studio.projects.found(project):
                raise UsageError("Look for people first.")
            if current.kind == "faces":
                studio.projects.write_labels(project)
            return studio.jobs.start(current, action, source)

    @app.get("/api/projects/{project}/jobs/{number}", responses=_ERRORS)
    def job(studio: _Shared, project: _Id, number: _Int) -> Job:
        """Return how far a job is, or what came of it."""
        return studio.jobs.get(project, number)

    @app.post("/api/projects/{project}/jobs/{number}/cancel", responses=_ERRORS)
    def cancel(studio: _Shared, project: _Id, number: _Int) -> Job:
        """Interrupt a job; it can be resumed."""
        return studio.jobs.cancel(project, number)

    @app.post("/api/projects/{project}/jobs/{number}/resume", responses=_ERRORS)
    def resume(studio: _Shared, project: _Id, number: _Int) -> Job:
        """Go on with a job that was interrupted or failed."""
        return studio.jobs.resume(project, number)

    @app.delete("/api/projects/{project}/jobs/{number}", status_code=204, responses=_ERRORS)
    def delete(studio: _Shared, project: _Id, number: _Int) -> None:
        """Delete a job and what it wrote."""
        studio.jobs.delete(project, number)

    @app.get(
        "/api/projects/{project}/jobs/{number}/downloads/{file}", responses=_ERRORS | _ANY, response_class=FileResponse
    )
    def download(
        studio: _Shared, project: _Id, number: _Int, file: _Int, look: Annotated[bool, Query()] = False
    ) -> FileResponse:
        """Return a file that a job wrote, to be saved; with ``look``, to be shown in a tab of its own."""
        path, told = studio.jobs.download(project, number, file)
        answer = FileResponse(path, filename=told.name, content_disposition_type="inline" if look else "attachment")
        answer.headers["content-security-policy"] = _REPORT
        return answer
