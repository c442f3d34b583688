"""Sources: arrays, data frames, CSV and Parquet files, and dask, read as blocks of numbers."""
