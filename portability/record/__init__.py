"""Launches of other people's programs: recorded as they happen, and compiled again for every target."""
