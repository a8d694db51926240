"""The builtin engine: a folder of a repository, applied and looked after without Argo CD."""
