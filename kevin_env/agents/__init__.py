"""Coding agents as policies: they get tools, or a folder to work in, instead of a chat.

`session` is one agent's episode within its limits, `server` serves it to MCP clients by stdio or
HTTP, `workspace` writes the folder. Needs the extra `mcp`. An agent learns verdicts only from the
server, which judges with any pool: nothing that the agent can edit affects them.
"""

try:
    import mcp  # noqa: F401  (the first import to fail without the extra)
except ImportError as error:
    raise ImportError("this needs the extra mcp: pip install 'kevin-env[mcp]'") from error
