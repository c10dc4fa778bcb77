"""Many problems, samples and turns against a policy, and the figures that papers report of them."""
