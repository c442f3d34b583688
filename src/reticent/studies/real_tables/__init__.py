"""Real tables, exported as people have them, through the command line."""
