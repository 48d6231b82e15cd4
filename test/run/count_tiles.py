"""count_tiles.py LIBRARY OPTION: checks that attn-run counts the tiles of a causal mask over 8 x 512 x 512 pairs."""
import json
import math
import re
import subprocess
import sys

library, option = sys.argv[1:]
said = json.loads(subprocess.run(["attn-run", library, option, "--json"], check=True, capture_output=True).stdout)
report = subprocess.run(["attn-run", library, "--describe"], check=True, capture_output=True, text=True).stdout
q, k = map(int, re.search(r"tiles of (\d+) queries and (\d+) keys", report).groups())
# A tile of queries computes the keys up to the position of its last query.
run = 8 * sum(math.ceil(min(512, first + q) / k) for first in range(0, 512, q))
total = 8 * math.ceil(512 / q) * math.ceil(512 / k)
if (said["tiles_run"], said["tiles_skipped"]) != (run, total - run):
    sys.exit(f"expected {run} tiles run and {total - run} skipped, got {said['tiles_run']} and {said['tiles_skipped']}")
