"""HTTP interface of the service: what operators and clients may ask for.

No decision about privacy is taken here.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

import reticent
from reticent.errors import BadInput, BudgetExceeded, LedgerError, ReticentError
from reticent.models.bandits.joint import JointBandit
from reticent.models.bandits.local import LocalBanditServer
from reticent.privacy.bounds import Bounds
from reticent.privacy.ledger.ledger import Ledger
from reticent.privacy.ledger.tables import Execute
from reticent.service.experiment_host import ExperimentHost, NotFound, open_quota
from reticent.service.rate_limits import Gate, SizeLimit, is_allowed
from reticent.service.store import Experiment, Store, Token
from reticent.service.tokens import Tokens, issue

__all__ = ["make_app"]

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
_LARGEST_BODY = 1_000_000  # bytes
# These tell nothing of experiments; all the rest needs a token
_PUBLIC = frozenset({"/", "/health", "/metrics", "/openapi.json"})
_STATUS: dict[type[ReticentError], int] = {
    NotFound: 404,
    BudgetExceeded: 402,
    LedgerError: 503,
    BadInput: 422,
}
_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
    "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Name = Annotated[str, Field(pattern=_NAME)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


async def _operator(request: Request) -> None:
    """Refuse whom the gate did not let in as an operator.

    A handler does not rely on how the gate reads paths.
    """
    _authorized_token(request, None)


async def _client(name: str, request: Request) -> Token:
    """The token of a client of this experiment, which the gate found."""
    return _authorized_token(request, name)


def _authorized_token(request: Request, experiment: str | None) -> Token:
    token = getattr(request.state, "token", None)
    if not isinstance(token, Token):
        raise HTTPException(
            401, "Give a valid token: 'Authorization: Bearer rt_…'.", {"WWW-Authenticate": "Bearer"}
        )
    if not is_allowed(token, experiment):
        raise HTTPException(403, "This token is for something else.")
    return token


OPERATOR = [Depends(_operator)]
Client = Annotated[Token, Depends(_client)]


class RequestBody(BaseModel):
    """Abstract: the body of a request; fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid")


class NewExperiment(RequestBody):
    """An experiment: public ranges, horizon and budget.

    A joint one is charged to the ledger when it is created. A local one is not: every client makes
    and keeps its own promise.
    """

    name: Name
    mode: Literal["joint", "local"] = "joint"
    x: list[tuple[Finite, Finite]] = Field(min_length=1, max_length=50)
    y: tuple[Finite, Finite]
    horizon: int | None = Field(default=None, ge=1, le=10**9)
    epsilon: float = Field(gt=0, le=1e6)
    delta: float = Field(gt=0, lt=1)
    dataset: str | None = Field(default=None, min_length=1, max_length=200)
    contexts: Literal["private", "public"] = "private"
    rounds_per_person: int = Field(default=1, ge=1, le=10**6)


class NewToken(RequestBody):
    """A client's token, and for how many days it counts.

    It is one person's, who begins at most ``rounds_per_person`` rounds with it. ``relay``: that of
    an app which many people use; it sees to it that nobody takes part more often, and has as many
    asks open as ``open_per_relay`` says.
    """

    days: float = Field(default=90, gt=0, le=3650)
    relay: bool = False


class Candidates(RequestBody):
    """What may be tried in this round, one list of numbers each."""

    candidates: list[list[float]] = Field(min_length=1, max_length=1000)


class Reward(RequestBody):
    """What came of a round."""

    ask: str = Field(pattern="^[0-9a-f]{32}$")
    reward: float


class Report(RequestBody):
    """What a client of a local experiment tells: noisy already.

    ``id`` is the client's own: a repeated report counts once.
    """

    id: str = Field(pattern="^[0-9a-f]{32}$")
    report: dict[str, Any]


@dataclass
class _Service:
    """What the handlers work with, while the service runs."""

    store: Store
    host: ExperimentHost
    tokens: Tokens


def make_app(
    url: str, *, store_path: str | None = None, rate: float = 100.0, open_seconds: int = 3600
) -> FastAPI:
    """The service on the ledger at ``url``; at most ``rate`` requests a second for each token.

    ``store_path``: the file for what is secret; left out, beside the ledger (`Store`). Whoever runs
    this app by another program than ``reticent bandit serve`` must not let it believe
    X-Forwarded-For of clients.
    """
    running: list[_Service] = []  # one, from start to end
    started = time.monotonic()
    answered = [0]

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        store = Store(url, store_path)
        with store.alone():
            host = ExperimentHost(store, open_seconds=open_seconds)
            running.append(_Service(store, host, Tokens(store)))
            yield
            running.pop().host.close()

    app = FastAPI(
        title="reticent bandit service",
        version=reticent.__version__,
        summary="Experiments on people, with joint or local differential privacy.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(
        Gate, find=lambda text: running[0].tokens.find(text), rate=rate, public=_PUBLIC
    )
    app.add_middleware(SizeLimit, most=_LARGEST_BODY)

    @app.middleware("http")
    async def guarded(request: Request, call: Callable[[Request], Any]) -> Any:
        response = await call(request)
        answered[0] += 1
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    @app.exception_handler(ReticentError)
    async def refused(request: Request, error: ReticentError) -> Any:
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 409)
        return JSONResponse({"detail": str(error)}, status_code=status)

    @app.exception_handler(RequestValidationError)
    async def misunderstood(request: Request, error: RequestValidationError) -> Any:
        """What is wrong and where, but not what was given: that may be a person's."""
        detail = [
            {key: problem[key] for key in ("type", "loc", "msg")} for problem in error.errors()
        ]
        return JSONResponse({"detail": detail}, status_code=422)

    async def done(job: Callable[[Any], Any]) -> Any:
        """The result of a job, when it is on disk."""
        return await asyncio.wrap_future(running[0].host.submit(job))

    responses: dict[int | str, dict[str, Any]] = {
        401: {"description": "No valid token"},
        403: {"description": "A token for something else"},
        429: {"description": "Too many requests"},
        503: {"description": "The database cannot be used"},
    }
    named = responses | {404: {"description": "There is none of that name"}}

    paid = responses | {402: {"description": "The budget is used up"}}

    @app.post("/experiments", status_code=201, responses=paid, dependencies=OPERATOR)
    def create(wanted: NewExperiment) -> dict[str, Any]:
        """Create an experiment; if it is a joint one, charge its budget."""
        joint_only = (
            wanted.dataset is not None
            or wanted.rounds_per_person > 1
            or wanted.contexts == "public"
        )
        if wanted.mode == "local" and (wanted.horizon is None or joint_only):
            raise BadInput(
                "A local experiment needs a horizon, and has no dataset, "
                "public contexts or rounds_per_person: every client keeps its "
                "own promise, and the service never sees a record."
            )

        def make() -> JointBandit | LocalBanditServer:
            bounds = Bounds(x=wanted.x, y=wanted.y)
            if wanted.mode == "local":
                return LocalBanditServer(
                    bounds=bounds,
                    horizon=wanted.horizon or 1,
                    epsilon=wanted.epsilon,
                    delta=wanted.delta,
                )
            ledger = None
            if wanted.dataset is not None:
                ledger = url
            return JointBandit(
                bounds=bounds,
                horizon=wanted.horizon,
                contexts=wanted.contexts,
                epsilon=wanted.epsilon,
                delta=wanted.delta,
                records_per_person=wanted.rounds_per_person,
                ledger=ledger,
                dataset=wanted.dataset,
            )

        running[0].host.create(wanted.name, wanted.mode, wanted.dataset or "", make)
        return {"name": wanted.name}

    @app.get("/experiments", responses=responses, dependencies=OPERATOR)
    async def experiments() -> list[dict[str, Any]]:
        """All experiments: rounds and budget, which are public."""
        return await done(lambda execute: _overviews(running[0], execute))

    @app.get("/experiments/{name}/estimate", responses=named, dependencies=OPERATOR)
    async def estimate(name: str) -> dict[str, Any]:
        """What the releases say of the reward function.

        Along each input, the others in the middle.
        """
        return await done(lambda execute: _estimate(running[0].host.running(execute, name).bandit))

    @app.post("/experiments/{name}/tokens", status_code=201, responses=named, dependencies=OPERATOR)
    def new_token(name: str, wanted: NewToken) -> dict[str, str]:
        """A token for a client of this experiment. It is shown once."""
        service = running[0]
        service.host.submit(lambda execute: service.host.running(execute, name) and None).result()
        token = issue(service.store, "client", name, days=wanted.days, relay=wanted.relay)
        service.tokens.refresh(soon=True)
        return {"token": token}

    @app.delete(
        "/experiments/{name}/tokens/{id}", status_code=204, responses=named, dependencies=OPERATOR
    )
    async def revoke(name: str, id: str) -> None:
        """End a client's token, by the part between the underscores."""
        if not await done(lambda execute: running[0].store.revoke(execute, id, name)):
            raise NotFound("There is no such token: give the part between its underscores.")
        running[0].tokens.refresh(soon=True)

    @app.post(
        "/experiments/{name}/ask",
        responses=named | {409: {"description": "The horizon is used up"}},
    )
    async def ask(name: str, body: Candidates, client: Client) -> dict[str, Any]:
        """Begin a round: which candidate to try.

        The answer is for the person who brought the candidates.
        """
        relay = bool(client.relay)
        ask_id, choice = await done(
            lambda execute: running[0].host.ask(
                execute, name, client.id, body.candidates, relay=relay
            )
        )
        return {"ask": ask_id, "choice": choice}

    @app.post("/experiments/{name}/tell", responses=named)
    async def tell(name: str, body: Reward, client: Client) -> dict[str, Any]:
        """End a round. A repeated request counts once."""
        await done(
            lambda execute: running[0].host.tell(execute, name, client.id, body.ask, body.reward)
        )
        return {"counted": True}

    @app.get("/experiments/{name}/message", responses=named, dependencies=[Depends(_client)])
    async def message(name: str) -> dict[str, Any]:
        """What a client of a local experiment needs to choose and to report by itself; public."""
        text = await done(lambda execute: running[0].host.local(execute, name).bandit.message())
        return dict(json.loads(text))

    @app.post(
        "/experiments/{name}/report",
        responses=named | {409: {"description": "The horizon is used up"}},
    )
    async def report(name: str, body: Report, client: Client) -> dict[str, Any]:
        """Take in a noisy report.

        A repeated one counts once; one that answers an old message does not count.
        """
        try:
            text = json.dumps(body.report)
        except RecursionError:
            raise BadInput(
                "This is not a report of a LocalBanditClient: send what its tell() gave."
            ) from None
        relay = bool(client.relay)
        counted = await done(
            lambda execute: running[0].host.report(
                execute, name, client.id, body.id, text, relay=relay
            )
        )
        return {"counted": counted}

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Whether the database can be used."""
        try:
            await done(lambda execute: None)
        except ReticentError:
            raise HTTPException(503, "The database cannot be used.") from None
        return {"status": "well"}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> str:
        """Of the process, nothing of experiments."""
        return (
            f"reticent_uptime_seconds {time.monotonic() - started:.0f}\nreticent_requests_total "
            f"{answered[0]}\n"
        )

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def page() -> HTMLResponse:
        text = resources.files("reticent.service").joinpath("page.html").read_text(encoding="utf-8")
        return HTMLResponse(
            text,
            headers={"Content-Security-Policy": _PAGE_POLICY, "Referrer-Policy": "no-referrer"},
        )

    return app


def _overviews(service: _Service, execute: Execute) -> list[dict[str, Any]]:
    """Overviews of all experiments that were paid for."""
    return [
        _overview(service, execute, experiment)
        for experiment in service.store.experiments(execute)
        if experiment.state
    ]


def _overview(service: _Service, execute: Execute, experiment: Experiment) -> dict[str, Any]:
    bandit = service.host.running(execute, experiment.name).bandit
    told, waiting = service.store.counts(execute, experiment.name)
    guarantee = bandit.guarantee_
    spent = None
    left = None
    if experiment.dataset:
        ledger = Ledger(service.store.url)
        spent = ledger.spent(experiment.dataset)
        left = ledger.remaining(experiment.dataset)
    return {
        "name": experiment.name,
        "mode": experiment.mode,
        "rounds": told,
        "open": waiting,
        "horizon": bandit.horizon,
        "rounds_per_person": guarantee.records_per_person,
        "open_per_relay": open_quota(bandit.horizon),
        "releases": len(bandit.releases_),
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "statement": guarantee.statement,
        "dataset": experiment.dataset or None,
        "spent": spent,
        "left": left,
    }


def _estimate(bandit: JointBandit | LocalBanditServer, points: int = 61) -> dict[str, Any]:
    """Posterior of the reward along each input, the others in the middle of their ranges."""
    ranges = np.array(bandit.bounds.x, dtype=np.float64)
    middle = ranges.mean(axis=1)
    lines = []
    for j, (low, high) in enumerate(ranges):
        at = np.tile(middle, (points, 1))
        at[:, j] = np.linspace(low, high, points)
        mean, sd = bandit.posterior_.moments(at)
        lines.append({"x": at[:, j].tolist(), "mean": mean.tolist(), "sd": sd.tolist()})
    return {"inputs": lines, "rewards": list(bandit.bounds.y[0])}
