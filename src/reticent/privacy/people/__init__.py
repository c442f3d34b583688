"""People: the unit of privacy, and weights of records by whose they are."""
