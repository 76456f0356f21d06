"""The commands of `portability`, one module each: `add_arguments(parser)` and `main(args) -> int`."""
