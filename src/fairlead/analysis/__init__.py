"""The science of verdicts: from samples to a label per metric, to a score, to a verdict.

In reading order: `samples` cleans what was measured, `statistics` and `ranksum` compare two
sides, `classify` gives a metric its label as Kayenta would, `own_judge` asks what Kayenta
misses, `score` and `verdict` sum up, `judge` runs all of it. `expression`, `conditions` and
`limits` are the other way to judge: a threshold or a condition per measurement, and how many
bad measurements a metric may have. Nothing here knows a clock, a network or chance.
"""
