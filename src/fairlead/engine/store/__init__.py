"""Where machines are remembered: SQLite for one machine, PostgreSQL for many."""
