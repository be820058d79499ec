"""``antorcha lab``: the interactive lesson page.

A lesson, an editor, a terminal, and the inside of every tensor, in the browser; the learner's code
runs in a child process. A file for each part:

guard      who may speak to the server: the security of the page
kernel     the child process's life: start, run, interrupt, restart, limits
child      what runs in the child: the learner's code, and what is told of it
files      the learner's work as plain .py files
session    one piece of work: its text, its child, its results; any number of pages look at it
page       the page: its parts and how they lie; panes/ has a file for each
words      every word of the page, in English and in Spanish
app        wiring and start
"""
