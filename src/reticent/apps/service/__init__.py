"""The bandit service: experiments that clients ask and tell over HTTP, with their state in the ledger's database."""
