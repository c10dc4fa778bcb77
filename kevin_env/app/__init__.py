"""The commands as functions of a pool, a policy and a console, without argument parsing."""
