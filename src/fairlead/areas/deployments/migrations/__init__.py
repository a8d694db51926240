"""Migrations of a PostgreSQL database: read from files, evaluated on a scratch copy, run in order.

files > statements > scratch copy > observation > classification; `runner` applies what is pending.
"""
