"""What all tests share."""

pytest_plugins = (
    "tests.signals",
    "tests.deadlines",
    "tests.marks",
    "tests.postgres",
    "tests.aws",
    "tests.engines",
    "tests.cluster.plugin",
)
