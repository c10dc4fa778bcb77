"""What the hardware allows at most, and what a call does."""
