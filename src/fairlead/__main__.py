"""The command `fairlead`, also as `python -m fairlead`."""

from fairlead.cli import app


def main() -> None:
    app.main()


if __name__ == "__main__":
    main()
