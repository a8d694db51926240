"""What all tests share."""

pytest_plugins = ("tests.marks", "tests.postgres", "tests.engines", "tests.cluster.plugin")
