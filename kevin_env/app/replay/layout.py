"""What screens of some size have room for."""

from kevin_env.app.replay.state import Size

WIDE = 132
"""Columns from which on the turns stand beside the pane."""
LEAST = Size(20, 6)
"""Smaller screens are drawn as if they were of this size, and cut."""
