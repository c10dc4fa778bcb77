"""`python -m kevin_env` is `kevin-env`."""

import sys


def main() -> None:
    """Runs the command line. Ctrl-C is quiet while it is being imported, too."""
    try:
        from kevin_env.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
