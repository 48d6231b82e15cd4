"""Prints the names in the JSON object on standard input, and whether its times are in ascending order."""
import json
import sys

figures = json.load(sys.stdin)
times = [figures[name] for name in ("min_ms", "median_ms", "p90_ms", "p99_ms", "max_ms")]
print(*sorted(figures))
print("ascending:", times == sorted(times))
print(f"{figures['repetitions']} calls of {figures['concurrency']} callers")
