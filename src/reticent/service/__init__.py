"""The bandit service.

Experiments that clients ask and tell over HTTP, with their state in a file of its own.
"""
