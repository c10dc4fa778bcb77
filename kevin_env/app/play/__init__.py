"""A policy plays while a person watches, and has a say.

    opening     the episode to be played: a new one, or one that is taken up again
    plain       without a screen: lines as things happen
    session     one episode whose replies and judgements are waited for elsewhere; nothing in it blocks
    state       what the screen shows, as frozen values
    events      what happens to an episode, and what it does to the state
    keys        reduce(state, event or key) -> state
    screens     render(state, size) -> lines; `layout`, `table`, `panes` and `help_screen` make the parts
    tail        colours the end of a reply that is still coming in
    editor      what a person's editor begins with, and what becomes of it
    loop        the only part that reads keys and draws
    batch       many samples side by side: state and reduce; `batch_screen` renders, `batch_run` runs them

Everything that a model or a compiler wrote goes through `replay.code.clean` before it is shown on a
screen.
"""
