"""The controller runtime: from a watched object to the writes that make the world match it.

config, credentials → client (limits, answers) → watch (cache) → queue → reconciler
                              ↑                                            ↓
                              └────────── apply, status, events ───────────┘
leader and shards decide which process acts; schema and admission guard what comes in.
"""
