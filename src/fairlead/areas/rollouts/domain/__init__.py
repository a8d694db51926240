"""A rollout's machine: a changed workload goes through steps and ends promoted or rolled back.

In reading order: `plan` says what is requested and the steps it makes; `slots` where versions run,
`observation` what was observed of them; `messages` and `events` what is said; `states` where we
are; `machine` decides, with one module for each of the `phases` and `verbs` for what people ask,
which `declared_verbs` names for all who offer it; `emit` turns events into effects, sends and
timers, `evolve` into the next state; `limiter` and `group` coordinate rollouts; `view` shows the
state to others as a `status`, whose memory `status_codec` writes and reads.
"""
