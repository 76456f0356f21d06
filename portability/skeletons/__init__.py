"""Templates of what people add, and how they are put into a project: `portability new`.

A template is a text file in this package, filled by `string.Template`: `${name}`, `${title}`, `${class_name}`.
"""

from __future__ import annotations
