"""The roofline of a problem: its work, and the ceilings of the device."""
