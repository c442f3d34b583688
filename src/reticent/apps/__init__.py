"""Applications: the command line and what it shows. No maths, and no decision about privacy."""
