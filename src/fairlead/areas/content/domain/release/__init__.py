"""The release of a version of content, pure: propose, review, deploy, raise the share, decide.

`plan` says how the share grows, `place` where the two versions are deployed. `messages`, `events`
and `state` are the machine's words; `machine` takes commands, `advance` moves a run that nobody
steers, `analysis` counts what checks found.
"""
