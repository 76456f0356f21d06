"""What is shown outside a terminal: the page, its pictures, a badge, and what a CI job's own page takes.

Nothing here is imported by a command that prints a table. The page and the badge need Jinja2; pictures need matplotlib,
and the page is whole without them.
"""
