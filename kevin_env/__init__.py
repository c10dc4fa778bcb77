"""kevin-env."""
