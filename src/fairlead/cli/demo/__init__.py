"""`fairlead demo`: trips driven by a worker that is killed on the way, and nothing is lost.

command ──► story: order trips ──► kill the worker ──► start another ──► proof
              │        ▲                  (a process of its own: worker.py)
              ▼        │ follows the feed of events (record.py)
            screen   store ◄──────────► worker ──► road (the outside: road.py)
"""
