"""The ledger: one budget a data set, durable and append-only, on SQLite or PostgreSQL."""
