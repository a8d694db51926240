"""`python -m tools.cluster build|gateway|status|up`: the test cluster for people."""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from fairlead import errors
from tools.cluster import build, control_plane, parts


def main() -> int:
    asked = _arguments()
    try:
        match asked.command:
            case "build":
                build.build(asked.jobs)
                return 0
            case "gateway":
                build.build(asked.jobs, extras=True)
                return 0
            case "status":
                return status()
            case _:
                return up(nodes=not asked.no_nodes)
    except errors.FairleadError as failure:
        print(f"error: {failure.message}\nhint: {failure.hint}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        print("cluster: stopped; the next build goes on from here", file=sys.stderr)
        return 130


def status() -> int:
    """Which parts are here, one a line on stdout; 1 when some are missing."""
    found = parts.find()
    for program in parts.PROGRAMS:
        path = found.programs.get(program.name)
        size = f"{path.stat().st_size / 1e6:.0f} MB" if path else "-"
        print(f"{program.name:<24} {size:>7}  {path or 'missing'}")
    missing = found.missing()
    for folder in dict.fromkeys(files.folder for files in parts.FILES):
        path = found.files / folder
        count = "-" if folder in missing else f"{len(list(path.iterdir()))} files"
        print(f"{folder:<24} {count:>7}  {'missing' if folder in missing else path}")
    if missing:
        print(f"hint: {parts.HOW}", file=sys.stderr)
    return 1 if missing else 0


def up(*, nodes: bool) -> int:
    """A cluster in the foreground; the path of its kubeconfig on stdout, talk on stderr."""
    # Taken before anything starts, so that no signal finds servers without an owner.
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairlead-cluster-") as folder:
        cluster = control_plane.ControlPlane(parts.find(), Path(folder))
        try:
            cluster.start()
            if nodes:
                cluster.start_nodes()
            seconds = time.monotonic() - started
            print(f"cluster: up after {seconds:.1f} s at {cluster.url}", file=sys.stderr)
            print("cluster: Ctrl-C stops it and removes its data", file=sys.stderr, flush=True)
            print(cluster.kubeconfig, flush=True)
            signal.sigwait(ends)
        finally:
            cluster.stop()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build what is missing, once for all clones")
    gateway = commands.add_parser("gateway", help="the same for Envoy Gateway, a real data plane")
    for making in (building, gateway):
        making.add_argument("--jobs", type=int, help="compile at most this many packages at once")
    commands.add_parser("status", help="say which parts are here, and how to get the others")
    running = commands.add_parser("up", help="run a cluster until Ctrl-C; prints its kubeconfig")
    running.add_argument("--no-nodes", action="store_true", help="without scheduler and fake node")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
