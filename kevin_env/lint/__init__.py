"""Whether a problem is fit to be trained on: what a judge finds out about one on its own inputs.

`report` says what is found and takes no torch; `examine.examine` finds it, in a judge process.
"""
