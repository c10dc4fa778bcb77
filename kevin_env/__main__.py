"""`python -m kevin_env` is `kevin-env`."""

from kevin_env.cli import main

if __name__ == "__main__":
    main()
