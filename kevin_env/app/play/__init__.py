"""Playing episodes while a person watches; the screens are in `app.tui`.

opening     the episode to be played: a new one, or one that is resumed
plain       without a screen: lines as things happen
session     one episode whose replies and judgements run in other threads; nothing in it blocks
events      what happens to an episode
live        what is known of an episode and of the turn that is being taken
batch       many samples side by side
editor      the draft that a person edits, and the reply made of it
"""
