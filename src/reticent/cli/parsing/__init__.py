"""Parts of a command line that are checked against each other, and against a file."""
