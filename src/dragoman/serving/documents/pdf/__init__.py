"""PDF: text in reading order, read in a process of its own, and written as a Word or text file."""
