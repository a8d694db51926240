"""Intents as objects of a cluster, and who performs the operations behind them."""
