"""What pathtemp reaches on problems with known answers; see README.md beside this file."""
