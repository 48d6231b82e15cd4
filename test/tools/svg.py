"""svg.py FILE CLASS=N ..: checks that the image is XML, with N rectangles of each CLASS besides the legend's."""
import collections
import sys
import xml.etree.ElementTree

root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
width, height = float(root.get("width")), float(root.get("height"))
counts = collections.Counter()
for rectangle in root.iter("{http://www.w3.org/2000/svg}rect"):
    if "class" not in rectangle.attrib:
        continue
    counts[rectangle.get("class")] += 1
    x, y, w, h = (float(rectangle.get(name)) for name in ("x", "y", "width", "height"))
    if x < 0 or y < 0 or x + w > width or y + h > height:
        sys.exit(f"expected rectangles within {width} x {height}, got {rectangle.attrib}")
for expected in sys.argv[2:]:
    name, number = expected.split("=")
    if counts[name] != int(number) + 1:
        sys.exit(f"expected {number} rectangles '{name}' beside the legend's, got {counts[name] - 1}")
