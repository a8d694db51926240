"""Write requirements/*.txt: every dependency pinned with its hashes, no index named."""

import subprocess
import sys

LOCKS = {
    "runtime": ["--extra=telemetry", "--extra=demo"],
    "test": ["--extra=telemetry", "--extra=demo", "--group=test", "--group=check"],
    "bench": [
        "--extra=telemetry",
        "--extra=demo",
        "--group=test",
        "--group=check",
        "--group=bench",
    ],
}
# Programs beside ours, each with its own environment: no dependency of ours is among them.
APART = {"ha": ["--group=ha"]}


def main() -> int:
    for name, groups in {**LOCKS, **APART}.items():
        print(f"locking requirements/{name}.txt", file=sys.stderr)
        command = [
            *("uv", "pip", "compile", "--universal", "--generate-hashes"),
            *(["pyproject.toml"] if name in LOCKS else []),
            *("--no-emit-index-url", "--no-emit-find-links", "--python-version", "3.11"),
            *("--no-header", "--quiet", "--output-file", f"requirements/{name}.txt"),
        ]
        subprocess.run([*command, *groups, *sys.argv[1:]], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
