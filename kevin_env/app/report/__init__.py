"""The report of a run: its figures, and every trajectory behind them.

    summary    the contents of a report, from a run's episodes and figures
    write      reads the run, and writes HTML (with replay's page and `assets`) or Markdown

A small run is one file. The trajectories of a larger one are in pages beside it: `write.SINGLE`.
"""
