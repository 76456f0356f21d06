"""The probes: very small kernel cases, one file for each group of the language."""
