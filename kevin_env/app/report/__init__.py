"""The report of a run: its figures, and every trajectory behind them.

    values     the contents of a report, as frozen values
    summary    from a run's episodes and figures to those values
    write      reads the run, and writes HTML (with replay's page and `assets`) or Markdown

A small run is one file. The trajectories of a larger one are in pages beside it: `write.SINGLE`.
"""
