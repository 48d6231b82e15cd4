"""lines-in.py LINES TEXT: fails unless every line of the file LINES is in the file TEXT."""
import sys

lines, text = (open(path).read() for path in sys.argv[1:])
missing = [line for line in lines.split() if line not in text]
sys.exit("\n".join(missing) or None)
