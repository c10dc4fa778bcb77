"""The judge of a device: one submission is on it at a time, in order of arrival."""
