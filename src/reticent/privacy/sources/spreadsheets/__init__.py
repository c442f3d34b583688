"""Spreadsheets: one sheet of a workbook, its cells one by one."""
