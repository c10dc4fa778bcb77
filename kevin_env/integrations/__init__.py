"""Plugs for other people's tools. Each needs its extra and is imported only where it is used."""
