"""The screens, on Textual: replay, play, samples side by side, and an evaluation.

    app        what every screen has: help, notices, a line to type in, themes
    widgets    lines and tables of any length, of which only what is on the screen is drawn
    episode    the turns of one episode beside what the chosen turn holds
    replay     a list of episodes, and one or two of them

What a model or a compiler wrote reaches a widget only as `rich.text.Text` made by
`replay.pieces.text`: it is never read as markup, and holds no escape codes.
"""
