"""The clock: chains of calls on a GPU, alternating calls on a CPU."""
