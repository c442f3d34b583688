"""Streams: records that arrive one after another, released with correlated noise."""
