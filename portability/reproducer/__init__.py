"""One file that shows a failure without this package: shrunk, self-contained, and seen to show it.

change     a sample made smaller: sizes, values (in a runner)
source     a kernel's text with all that it uses (in a runner)
trace      what an operator does, as straight lines: torch's operations and launches (in a runner)
values     the file of a wrong execution, for Triton's own interpreter or a device
compiling  the file of a failure to compile, for `triton.compile`
inside     a runner's side
shrink     which smaller cell still fails in the same way (outside)
session    from the cell to the file that was run (outside)
"""
