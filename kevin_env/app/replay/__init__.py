"""Trajectories as plain text, Markdown, a page or a picture; the screen itself is in `app.tui`.

    library    the episodes of a file or folder: a row each at once, the episode when it is opened
    rows       what a list shows of an episode; `tables` lays it out
    query      which rows are wanted, in which order
    describe   what is said about an episode and a turn, as blocks; drawn as lines by `panes`, as
               Markdown by `markdown`, as HTML by `page`; `diffs` compares two kernels
    plain      without a screen
    export     to files; `page` is the HTML one, which `serve` keeps up to date

Everything that a model or a compiler wrote goes through `code.clean` before it is shown anywhere.
"""
