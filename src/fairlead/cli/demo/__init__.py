"""`fairlead demo`: a small shop is released twice before your eyes, on this machine.

command ──► setup (engine, platform, page) ──► story (deploy, watch, judge) ──► screen, summary
"""
