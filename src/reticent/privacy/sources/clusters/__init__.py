"""Clusters: frames of dask and Spark, added up where their partitions lie."""
