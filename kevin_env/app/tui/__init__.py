"""The screens on Textual: replay and play.

    app        what every screen has: help, notices, a line to type in, themes
    widgets    lines and tables of any length, of which only what is on the screen is drawn
    episode    the turns of one episode beside what the chosen turn holds
    listing    the list of episodes
    replay     one or two of them, and the application around both
    play       an episode that is being played

What a model or a compiler wrote reaches a widget only as `rich.text.Text` made by
`replay.pieces.text`: it is never read as markup, and holds no escape codes.
"""
