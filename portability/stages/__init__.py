"""What compilers make of a kernel, stage by stage: collected in a runner, read for what differs, and shown.

collect   one cell's launches, compiled for a target, with the text of every stage (in a runner)
passes    the IR after each of the compiler's passes
sass      NVIDIA's machine code, by the disassembler in Triton's wheel
facts     layouts, matrix instructions, widths of memory accesses: what targets differ in
sides     two of them beside each other
asking    the same from the outside: which cell is meant, and its runner's answer
"""
