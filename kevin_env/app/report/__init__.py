"""A run as a person reads it in a browser: its figures, and every trajectory that they come from.

    values     what a report says, as frozen values
    summary    from a run's episodes and figures to those values
    page       values -> one HTML page; its scripts and styles are those of replay's page, and `assets`
    markdown   values -> tables in Markdown
    write      reads the run and writes the files

A small run is one file. A larger one has its trajectories in pages beside it, see `write.SINGLE`.
"""
