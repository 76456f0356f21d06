"""Intel GPUs as a backend of triton-portability, shipped apart from it."""
