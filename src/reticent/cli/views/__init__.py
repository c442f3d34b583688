"""Tables and sentences that several commands print."""
