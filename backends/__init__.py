"""The bundled adapters, one file each with its block table beside it. A new file is found by itself."""
