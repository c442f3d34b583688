"""Studies: results of the papers and our own claims, computed again by ``reticent reproduce``.

Each study is a module with one function of the same shape:

    run(out, *, repeats, quick, seed, progress) -> Findings

It works on made-up or public data, so its noise may come from a seed, and no result of it is a
private release.
"""

from reticent.studies.registry import REPORT_SEED, STUDIES, Study

__all__ = ["REPORT_SEED", "STUDIES", "Study"]
