"""A rollout: a changed workload goes through steps and ends promoted or taken back.

In reading order: `spec`, `strategy` and `steps` say what is wanted and the plan it makes;
`triggers` and `windows` when a rollout begins; `sight` what is seen of the world; `messages` what
is said; `states` where we are; `machine` decides, with one file for each part of the way
(`founding`, `queueing`, `moving`, `watching`, `promoting`, `homing`) and `verbs` for what people
ask; `limiter` and `group` bind rollouts together; `ports` and `effects` reach the world; `view`
tells it.
"""
