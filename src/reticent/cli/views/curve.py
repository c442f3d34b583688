"""Terminal view of an obfuscated curve: its promise, certificate and guarantee."""

from typing import Any

from reticent.cli.terminal import aside, console, indented, line
from reticent.obfuscation.statements import promise_in_words
from reticent.reporting.formatting import format_short, signature_statement

__all__ = ["print_curve", "print_promise", "print_seal"]


def print_curve(model: Any, about: dict[str, Any]) -> None:
    """Show a released curve to a person."""
    from rich.text import Text

    if model.private_:
        seal = (" INFERENTIAL PRIVACY, NOT DP ", "bold white on blue")
    else:
        seal = (" NOT PRIVATE ", "white on red3")
    *inputs, output = about["columns"]
    console().print(
        Text.assemble(("Obfuscator", "bold"), f", {about['records']:,} values   ", seal, "\n")
    )
    line("Curve", f"{output} over {', '.join(inputs)}")
    print_promise(model)
    aside(f"Kernel {model.kernel_}, mean {format_short(model.mean_)}.", 12)
    console().print(Text("\nGuarantee", "bold"))
    console().print(indented(about["statement"]), "", sep="\n")
    print_seal(about)


def print_seal(about: dict[str, Any]) -> None:
    """Say what the file's SHA-256 is, and who signed it."""
    from rich.text import Text

    for title, text in (
        ("SHA-256", about["sha256"]),
        ("Signed", signature_statement(about["signed_by"])),
    ):
        console().print(Text(f"{title:<9}", "bold"), Text(text), sep="", soft_wrap=True)


def print_promise(model: Any) -> None:
    """Say what is promised, what is attained, and how much noise it took."""
    certificate = model.certificate_
    line("Promise", promise_in_words(model) + (", CONDITIONAL" if model.conditional_ else ""))
    line(
        "Attained",
        f"{format_short(certificate.attained)} at least, promised "
        f"{format_short(certificate.promised)}; checked at {certificate.checked:,} points",
    )
    if model.releases > 1:
        line(
            "Release",
            f"number {model.number_} of {model.releases} planned ones, which "
            "keep the promise together",
        )
    line(
        "Noise",
        f"trace {format_short(certificate.trace)}, within {certificate.gap:.0e} of the least "
        f"possible; {certificate.rank} directions",
    )
