"""Models: private estimators, one per file, each with its proof beside it.

A model says what it releases (a statistic of `privacy.row_maps`), how it learns from releases
(`learn`), and what it predicts.
"""
