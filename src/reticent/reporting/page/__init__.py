"""The release report: one page of HTML."""
