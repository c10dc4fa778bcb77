"""Playing episodes while a person watches; the screens are in `app.tui`.

opening     the episode to be played: a new one, or one that is resumed
plain       without a screen: lines as things happen
session     one episode whose replies and judgements run in other threads; nothing in it blocks
live        what happens to an episode, and what is known of it and of its running turn
batch       many samples side by side, as lines or as a screen
editor      the draft that a person edits, and the reply made of it
"""
