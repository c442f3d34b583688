"""Mutation tests of the trusted core: `python -m tools.mutation [FILE[:FUNCTION,…] …]`.

cosmic-ray changes one operator, number or condition of the core at a time. A mutant that makes no
test fail survives: either a test is missing, or the mutant is equivalent to the program as far as
its contract goes. `targets.toml` says for every file which tests must notice its mutants, and
excuses the equivalent ones by function and operator, each with a number and a reason.

`targets` reads that table, `mutants` makes the mutants, `first_look` tries them in forks of one
pytest session (a tenth of a second each), `second_look` tries again, in a copy of the tree, those
that went unnoticed. (mutmut leaves out decorated functions: here every sensitivity is a property.)
Needs `pip install cosmic-ray`.
"""
