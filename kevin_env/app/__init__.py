"""What the command line does, as functions of a pool, a policy and a console. Nothing here knows
about arguments.
"""
