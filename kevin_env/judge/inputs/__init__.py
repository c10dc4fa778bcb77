"""Input sets of a problem, and the reference that runs on them."""
