"""Compares outputs with the reference's, and finds patterns in wrong ones."""
