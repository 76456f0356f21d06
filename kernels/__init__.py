"""The bundled kernels, one file each. A new file with a CASE is found by itself."""
