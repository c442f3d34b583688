"""Row maps: from one scaled record to the row that a statistic sums.

Trusted, since they see records.
"""
