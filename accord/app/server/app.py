"""The HTTP application: its paths, what each takes and gives, and the files of the page."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from accord._version import __version__
from accord.app.server import answers, requests
from accord.app.server.limits import Refused, dump
from accord.app.server.pool import Pool
from accord.app.server.uploads import REMEDY, Uploads

PAGE = Path(__file__).parent / "page"
REFUSALS = {
    400: "The body is not valid JSON, or not a form with files.",
    401: "The token is missing or wrong (only where the server asks for one).",
    403: "The request comes from a page of another site.",
    404: "There is no such graph.",
    408: "The body did not arrive in time.",
    413: "The body, the graph or the answer is too large.",
    415: "The body has the wrong content type.",
    421: "The Host header is not a name of this server.",
    422: "The request cannot be met; the message says why.",
    503: "The server is busy. Try again after the seconds in Retry-After.",
    504: "The answer took too long.",
}
MOST_FILES = 4
REF = "#/components/schemas/{model}"
BODIES: tuple[type[BaseModel], ...] = (
    requests.PredictRequest,
    requests.ExplainRequest,
    requests.GraphRequest,
    requests.SweepsRequest,
    requests.DrawRequest,
)
POSTS: tuple[tuple[str, type[BaseModel], type[BaseModel], str, str], ...] = (
    ("predict", requests.PredictRequest, answers.Predictions, "Label graphs",
     "Labels that fit together, for one graph or many, as `NodeClassifier.predict` gives them."),
    ("explain", requests.ExplainRequest, answers.Explanation, "Explain a label",
     "A node's own evidence and what each neighbour contributes, as `NodeClassifier.explain` gives them."),
    ("answers", requests.GraphRequest, answers.GraphAnswers, "Compare the parts of the model",
     "Labels and probabilities of the node network, the edge network and the whole model."),
    ("sweeps", requests.SweepsRequest, answers.Sweeps, "Step through belief propagation",
     "Probabilities after each sweep, as `NodeClassifier.sweeps` gives them."),
    ("draw", requests.DrawRequest, answers.Drawing, "Place the nodes",
     "Positions for a drawing; of a large graph, those of the nodes around a centre."),
)  # fmt: skip


def build_app(pool: Pool, uploads: Uploads, close: Callable[[], None]) -> FastAPI:
    """The application.

    Args:
        pool: answers requests.
        uploads: keeps files.
        close: called when the server stops.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        pool.open()
        yield
        close()

    app = FastAPI(title="Accord", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    for kind, body, answer, summary, description in POSTS:
        app.add_api_route(
            f"/api/{kind}",
            relay(pool, kind),
            methods=["POST"],
            operation_id=kind,
            summary=summary,
            description=description,
            responses=documented(answer),
            openapi_extra={"requestBody": json_body(body)},
        )
    _add_readings(app, pool)
    _add_upload(app, pool, uploads)
    _add_page(app)
    _add_refusals(app)
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    return app


def relay(pool: Pool, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """A handler that passes a JSON body to a worker as it is."""

    async def handle(request: Request) -> Response:
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != "application/json":
            raise Refused(415, "Send JSON, with the header `Content-Type: application/json`.", "content_type")
        pool.enter()
        try:
            return as_json(*await pool.ask(kind, await request.body()))
        finally:
            pool.leave()

    return handle


def _add_readings(app: FastAPI, pool: Pool) -> None:
    kept: dict[str, Response] = {}

    async def read(kind: str) -> Response:
        if kind not in kept:
            pool.enter()
            try:
                answer = as_json(*await pool.ask(kind, b""))
            finally:
                pool.leave()
            if answer.status_code != 200:
                return answer
            kept[kind] = answer
        return as_json(200, bytes(kept[kind].body))

    @app.get("/api/health", operation_id="health", summary="Is the server alive?", response_model=answers.Health)
    async def health() -> answers.Health:
        return answers.Health(status="ok", version=__version__, waiting=pool.waiting)

    @app.get("/api/model", operation_id="model", summary="Describe the model", responses=documented(answers.Model))
    async def model() -> Response:
        """States, tasks and features of the model, and the limits of the server."""
        return await read("model")

    @app.get("/api/graphs", operation_id="graphs", summary="List graphs", responses=documented(answers.GraphList))
    async def graphs() -> Response:
        """Graphs that requests can name by id: test graphs of the model's own data, if they are there."""
        return await read("graphs")


def _add_upload(app: FastAPI, pool: Pool, uploads: Uploads) -> None:
    form = {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {"files": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            }
        },
    }

    @app.post(
        "/api/graphs",
        operation_id="upload",
        summary="Upload a graph",
        responses=documented(answers.GraphSize),
        openapi_extra={"requestBody": form},
    )
    async def upload(request: Request) -> Response:
        """Files of one graph: a .json or .npz file, or nodes.csv and edges.csv. They are read as data, never run."""
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if given != "multipart/form-data":
            raise Refused(415, f"Send a form with files (multipart/form-data). {REMEDY}", "content_type")
        pool.enter()
        try:
            identity = uploads.add(await read_files(request))
            return as_json(*await pool.ask("upload", dump({"id": identity})))
        finally:
            pool.leave()


async def read_files(request: Request) -> dict[str, bytes]:
    """The files of a form, by the names that the client gave them."""
    try:
        async with request.form(max_files=MOST_FILES, max_fields=MOST_FILES) as form:
            sent = [value for _, value in form.multi_items()]
            files = {part.filename or "": await part.read() for part in sent if isinstance(part, UploadFile)}
    except (MultiPartException, HTTPException) as error:
        reason = error.message if isinstance(error, MultiPartException) else error.detail
        raise Refused(400, f"The form cannot be read ({reason}). {REMEDY}", "form") from error
    if not files or len(files) != len(sent):
        raise Refused(422, f"The form has {len(files)} files in {len(sent)} fields. {REMEDY}", "form")
    return files


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refuse(_: Request, refusal: Refused) -> Response:
        answer = as_json(refusal.status, refusal.body())
        if refusal.retry_after is not None:
            answer.headers["retry-after"] = str(refusal.retry_after)
        if refusal.status in (408, 413):
            answer.headers["connection"] = "close"  # the rest of the body is not wanted
        return answer

    @app.exception_handler(HTTPException)
    async def refuse_path(request: Request, error: HTTPException) -> Response:
        message = {
            404: f"There is nothing at {request.url.path[:80]}. See /openapi.json for what there is.",
            405: f"{request.url.path[:80]} does not take {request.method[:20]}. See /openapi.json.",
        }.get(error.status_code, str(error.detail))
        answer = as_json(error.status_code, Refused(error.status_code, message, "path").body())
        answer.headers.update(error.headers or {})
        return answer


def as_json(status: int, body: bytes) -> Response:
    """An answer with JSON that is ready."""
    return Response(body, status, media_type="application/json")


def documented(answer: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """The answers of a path, for the OpenAPI description."""
    refusals: dict[int | str, dict[str, Any]] = {
        status: {"model": answers.Error, "description": text} for status, text in REFUSALS.items()
    }
    return {200: {"model": answer, "description": "The answer."}, **refusals}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """The request body of a path, for the OpenAPI description."""
    reference = {"$ref": REF.format(model=model.__name__)}
    extra: Any = model.model_config.get("json_schema_extra") or {}
    example = extra.get("examples", [None])[0]
    content = {"schema": reference, **({} if example is None else {"example": example})}
    return {"required": True, "content": {"application/json": content}}


def described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes, description=DESCRIPTION)
        _, bodies = models_json_schema([(body, "validation") for body in BODIES], ref_template=REF)
        schema["components"]["schemas"] |= bodies["$defs"]
        app.openapi_schema = schema
    return app.openapi_schema


DESCRIPTION = (
    "Labels that agree: joint labels for the nodes of graphs. Every refusal is JSON with a code and a message that "
    "says what to fix. Where the server was started with a token, send `Authorization: Bearer TOKEN`."
)
