"""How inputs reach a candidate, and how its outputs reach the judge."""
