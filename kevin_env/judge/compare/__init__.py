"""Whether outputs are right, and what a wrong one has in common with the expected one."""
