"""``antorcha lab``: the interactive lesson page.

A lesson, an editor, a terminal, and the inside of every tensor, in the browser; the learner's code
runs in a child process. A file for each part:

lesson     lessons: Markdown files, read and checked; check, export, fields belong to it
guard      who may speak to the server: the security of the page
kernel     the child process's life: start, run, interrupt, restart, limits
child      what runs in the child; program runs one program, namespace tells of its tensors,
           notes of its losses, pictures of its figures
files      the learner's work as plain .py files
session    one piece of work: its text, its child, its results; any number of pages look at it
workplace  the sessions of one user, their folder, and what is remembered between visits
page       the page: its parts and how they lie; panes/ has a file for each part
screen     what the terminal shows; curves draws the losses, complete completes names
words      every word of the page, in English and in Spanish
app        wiring and start
"""
