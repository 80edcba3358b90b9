"""`accord serve`: start the server for one model and say where it is."""

import contextlib
import ipaddress
import os
import shutil
import socket
import tempfile
from pathlib import Path
from urllib.parse import quote

from rich.console import Console

from accord.app.runs import open_model
from accord.app.server.limits import Limits
from accord.errors import DataNotFoundError, OptionError

TOKEN_VARIABLE = "ACCORD_TOKEN"
SHORTEST_TOKEN = 16  # characters; a shorter one can be guessed
GRACE_SECONDS = 10  # for requests that are worked on when the server is stopped
CONNECTIONS = 512  # open at once; further ones are refused
PACKAGES = "fastapi, uvicorn and python-multipart"


def serve_run(
    run: Path, host: str, port: int, token: str | None, limits: Limits, data: str | None, console: Console
) -> None:
    """Serve a model until the process is stopped.

    Args:
        run: a run folder, or the folder of a saved model.
        host: the address to listen on.
        port: 0 takes any that is free.
        token: what clients must send; needed unless the address is a loopback address.
        limits: of requests.
        data: graphs to offer on the page.
        console: for messages.
    """
    try:
        import uvicorn

        from accord.app.server.app import build_app
        from accord.app.server.guard import LOOPBACK_NAMES, Guard
        from accord.app.server.pool import Pool
        from accord.app.server.uploads import Uploads
        from accord.app.server.worker import Job, Worker
    except ImportError as error:
        raise OptionError(
            f"accord serve: needs the packages {PACKAGES} ({error}). Install them: pip install 'accord[serve]'."
        ) from error
    local = is_loopback(host)
    check_token(token, local, host)
    open_model(run)
    listener = listen(host, port)
    folder = Path(tempfile.mkdtemp(prefix="accord-serve-"))  # only this user can read it
    uploads = folder / "graphs" / "uploads"  # readers look for a mapping file in the folders above a graph: ours alone
    uploads.mkdir(parents=True)
    workers = []
    try:
        console.print("[dim]Loading the model.[/]")
        workers = [Worker(Job(run, uploads, limits, data, folder)) for _ in range(limits.workers)]
        for worker in workers:
            worker.wait_until_ready()
        pool = Pool(workers, limits)

        def close() -> None:
            pool.close()
            shutil.rmtree(folder, ignore_errors=True)

        app = build_app(pool, Uploads(uploads, limits), close)
        guarded = Guard(app, limits, token, LOOPBACK_NAMES if local else None)
        config = uvicorn.Config(
            guarded,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        console.print(f"Serving {run} at {address(listener, token)}", soft_wrap=True, markup=False)
        console.print("[dim]Press Ctrl-C to stop.[/]")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
        console.print("[dim]The server has stopped.[/]")
    finally:
        for worker in workers:
            worker.kill()
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)


def read_token(token: str | None, path: Path | None) -> str | None:
    """The token of the option, of a file, or of the environment, in this order."""
    if token is not None and path is not None:
        raise OptionError("accord serve: give --token or --token-file, not both.")
    if path is not None:
        if not path.is_file():
            raise DataNotFoundError(f"{path}: there is no such file. Write the token into it, on one line.")
        return path.read_text(encoding="utf-8").strip()
    return token if token is not None else os.environ.get(TOKEN_VARIABLE)


def check_token(token: str | None, local: bool, host: str) -> None:
    """Refuse to serve others without a token, or with one that can be guessed or not be sent."""
    if token is None:
        if local:
            return
        raise OptionError(
            f"accord serve: --host {host} can be reached from other machines, which needs a token. Give --token-file "
            f"FILE, set {TOKEN_VARIABLE}, or leave --host out to serve this machine only."
        )
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise OptionError(
            f"accord serve: the token needs at least {SHORTEST_TOKEN} plain characters without spaces. Make one with "
            "`openssl rand -hex 24`."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that a port in use is reported before the model is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends answers without delay (TCP_NODELAY) only on sockets that name their protocol; else each takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(
            f"accord serve: cannot listen on {host}, port {port} ({reason}). Choose another with --port or --host."
        ) from error
    return listener


def address(listener: socket.socket, token: str | None) -> str:
    """What to open in a browser; the token is in the part that browsers do not send."""
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    secret = "" if token is None else f"/#token={quote(token, safe='')}"
    return f"http://{host}:{port}{secret}"
