"""Pure functions of public numbers and released values: no records, no noise, no files."""
