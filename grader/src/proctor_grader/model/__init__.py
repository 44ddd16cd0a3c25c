"""What an eval is: frozen values without I/O that every other package speaks in."""
