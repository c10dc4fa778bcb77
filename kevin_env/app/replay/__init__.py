"""Trajectories as a person reads them: on a screen with keys, as plain text, as a page, a picture
or Markdown.

    library    the episodes of a file or folder: a row each at once, the episode itself when it is opened
    query      which rows are wanted, in which order
    state      what the screen shows, as frozen values
    keys       reduce(state, key) -> state
    screens    render(state, size) -> lines; `panes`, `diffs`, `reward` and `pieces` make the parts
    loop       the only part that reads keys and draws; `terminal` knows escape codes
    plain      without a screen
    export     to files; `page` is the HTML one

Everything that a model or a compiler wrote goes through `code.clean` before it is shown anywhere.
"""
