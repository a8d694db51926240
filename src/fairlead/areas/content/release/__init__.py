"""How a release of content is performed: its file, its ports, and who is behind them.

rules (a file) ──► Propose ──► the machine ──► handlers ──► ports
local: processes behind an Envoy · kubernetes: a Deployment · shares: a file, a ConfigMap, Unleash
"""
