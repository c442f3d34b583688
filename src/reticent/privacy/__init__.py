"""The trusted core: the only code that reads records, draws noise or spends budget.

Read in this order: ``bounds`` → ``statistic`` → ``sources`` → ``noise`` → ``events`` → ``accounting`` → ``ledger`` → ``curator``.
"""
