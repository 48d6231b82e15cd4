"""Reads a report of --benchmark in JSON from standard input. Prints its keys, whether its times are in ascending order,
and the numbers of calls and callers."""
import json
import sys

figures = json.load(sys.stdin)
times = [figures[name] for name in ("min_ms", "median_ms", "p90_ms", "p99_ms", "max_ms")]
print(*sorted(figures))
print("ascending:", times == sorted(times))
print(f"{figures['repetitions']} calls of {figures['concurrency']} callers")
