"""Attacks on the promise, one function each; `python -m tests.attacks` runs them against version
0.1.0 and against this one.

Each attack is a program that an adversary, or a careless caller, could write. It returns what it
achieved and whether that is more than the promise allows. Attacks import `reticent` by today's
names; `old_names` says where version 0.1.0 had them, so that the same attack runs against both.
"""

from tests.attacks.old_names import use_old_names

use_old_names()
