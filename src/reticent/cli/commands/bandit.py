"""``reticent bandit …``: a bandit on a made-up problem, the bandit service, and who may use it."""

import ipaddress
import sys
from typing import Annotated

import typer

from reticent.cli.commands.ledger import LedgerUrl
from reticent.cli.options import Json, Quiet, example
from reticent.cli.terminal import advise, guarded, line, print_json, progress
from reticent.errors import BadInput

__all__ = ["bandit_app"]

bandit_app = typer.Typer(
    no_args_is_help=True,
    help="Experiments on people: choose, learn from the outcome, tell on no one.",
    epilog=example("reticent bandit serve budget.db"),
)


@bandit_app.command(
    "simulate",
    epilog=example(
        "reticent bandit simulate --epsilon 1 --delta 1e-5",
        "reticent bandit simulate camel --rounds 2000",
    ),
)
@guarded
def bandit_simulate(
    where: Annotated[
        str, typer.Argument(metavar="ENVIRONMENT", help="gp-sum, camel, styblinski or michalewicz.")
    ] = "gp-sum",
    epsilon: Annotated[
        float, typer.Option(metavar="NUMBER", help="Strength of the promise.")
    ] = 1.0,
    delta: Annotated[
        float, typer.Option(metavar="NUMBER", help="Chance that the promise may fail.")
    ] = 1e-5,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Rounds; as in the study if left out.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Draws the function, the candidates and the noise.")
    ] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Play a private bandit on a made-up problem, and see what privacy costs.

    Reads nothing, charges nothing.
    """
    from reticent.models.bandits.joint import JointBandit
    from reticent.studies.common.bandit_environments import ENVIRONMENTS, environment
    from reticent.studies.dubey2021.joint_regret import play

    if where not in ENVIRONMENTS:
        raise BadInput(
            f"There is no environment {where!r}: choose one of {', '.join(ENVIRONMENTS)}."
        )
    if rounds is not None and rounds < 1:
        raise BadInput(f"rounds must be at least 1, not {rounds}.")
    with progress(f"Playing {where}", quiet=quiet):
        place = environment(where, seed)
        n = rounds or place.rounds
        shares = {}
        for name, eps in (("private", epsilon), ("not private", 1e6)):
            bandit = JointBandit(
                bounds=place.bounds, horizon=n, epsilon=eps, delta=delta, random_state=seed
            )
            regret, chance = play(place, bandit, seed, n)
            shares[name] = float(regret.sum() / chance.sum())
            if name == "private":
                last = float(regret[-n // 4 :].sum() / chance[-n // 4 :].sum())
                releases = len(bandit.releases_)
    if json:
        return print_json(
            {
                "environment": where,
                "rounds": n,
                "releases": releases,
                "last_quarter": last,
                **shares,
            }
        )
    line("Played", f"{where}, {n:,} rounds, {releases} releases, ε={epsilon:g}, δ={delta:g}")
    line("Regret", f"{shares['private']:.3f} of random play ({last:.3f} in the last quarter)")
    line("Without privacy", f"{shares['not private']:.3f}")
    return advise(
        "reticent reproduce gpucb-regret, for many runs",
        "reticent.JointBandit, in Python, for an experiment of your own",
    )


Secrets = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="Where people's rounds are kept, secret; else beside the ledger.",
    ),
]


@bandit_app.command("serve", epilog=example("reticent bandit serve budget.db --port 8080"))
@guarded
def bandit_serve(
    ledger: LedgerUrl,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="NUMBER", help="Port to listen on.")] = 8080,
    rate: Annotated[
        float, typer.Option(metavar="NUMBER", help="Requests a second that one token may make.")
    ] = 100.0,
    store: Secrets = None,
    behind_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS", help="A proxy that says truly who its clients are; may be repeated."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Serve experiments over HTTP, until Ctrl-C.

    People's rounds and exact sums are in a file that only you may read.

    That file is LEDGER.service (see --store): as secret as the records, and never to be put back
    from a backup. The ledger holds charges only. Put a proxy that speaks HTTPS before it wherever
    others share the network.
    """
    try:
        import uvicorn

        from reticent.service.http_api import make_app
        from reticent.service.store import Store
    except ImportError:
        raise BadInput(
            'The service needs FastAPI and uvicorn: pip install "reticent[serve]".'
        ) from None
    if not rate > 0:
        raise BadInput("rate must be more than 0.")
    for address in behind_proxy or []:
        try:
            ipaddress.ip_network(address)
        except ValueError:
            raise BadInput(
                f"behind-proxy takes the address of a proxy, such as 10.0.0.2, not {address!r}."
            ) from None
    with Store(ledger, store).alone():  # says now, in words, what the server would say by failing
        where = f"http://{host}:{port}/"
        if json:
            print_json({"url": where})
        else:
            (print(f"Serving on {where} (the operators' page). Ctrl-C stops it."))
        sys.stdout.flush()  # whoever started it may be waiting for this line
    uvicorn.run(
        make_app(ledger, store_path=store, rate=rate),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(
            behind_proxy
        ),  # else a client could say who it is, and have a new limit each time
        forwarded_allow_ips=",".join(behind_proxy or []),
    )


@bandit_app.command("token", epilog=example("reticent bandit token budget.db --days 30"))
@guarded
def bandit_token(
    ledger: LedgerUrl,
    days: Annotated[float, typer.Option(metavar="NUMBER", help="How long it counts.")] = 90.0,
    store: Secrets = None,
    json: Json = False,
) -> None:
    """Make an operator's token, for whoever may use the service's file anyway. It is shown once."""
    from reticent.service.store import Store
    from reticent.service.tokens import issue

    if not 0 < days <= 3650:
        raise BadInput("days must be between 0 and 3650.")
    token = issue(Store(ledger, store), "operator", days=days)
    if json:
        return print_json({"token": token, "role": "operator", "days": days})
    print(token)
    return advise("reticent bandit serve, and open its page with this token")
