"""summary.py RESULTS LIST: counts what passed, failed and was skipped in RESULTS, a JSON file of lit.

It counts what was skipped by reason. A reason that LIST does not have, or has with a smaller number, counts as one
failure. Tests are skipped as a whole, because lit lacks a feature that they require, or in part:

* a test of GoogleTest that calls GTEST_SKIP() << "reason";
* a test of unittest: the reason is "unittest";
* anything else for which a test prints a line `skipped: reason`, or `skipped: reason: details`, to standard output.

The last line that summary.py prints is 'N passed, N failed, N skipped'. The exit status is not 0 if anything failed, or
if nothing passed.
"""
import collections
import json
import pathlib
import re
import sys


def find_skipped(test):
    """Yields a reason for each skipped part of a test. lit writes '# | ' before each line that a test prints."""
    output = test["output"]
    if test["code"] == "UNSUPPORTED":
        missing = re.search(r"unavailable features: ([^,]*)", output)
        yield f"needs {missing[1]}" if missing else output.strip()
        return
    yield from re.findall(r"^# \| .*: Skipped\n# \| (.*)", output, re.M)
    yield from re.findall(r"^# \| skipped: ([^:\n]*)", output, re.M)
    for count in re.findall(r"^# \| (?:OK|FAILED) \(.*\bskipped=(\d+)", output, re.M):
        yield from ["unittest"] * int(count)


def main(results, listed):
    try:
        tests = json.loads(pathlib.Path(results).read_text())["tests"]
    except FileNotFoundError:
        sys.exit(f"test: expected lit to write {results}, got no file")
    lines = pathlib.Path(listed).read_text().splitlines()
    limits = dict(line.rsplit(maxsplit=1) for line in lines if not line.startswith("#"))

    places = collections.defaultdict(list)  # of what was skipped, by reason
    for test in tests:
        for reason in find_skipped(test):
            places[reason].append(test["name"].removeprefix("attn :: "))
    more = 0
    for reason, names in sorted(places.items()):
        limit = int(limits.get(reason, 0))
        if len(names) <= limit:
            print(f"test: {len(names)} skipped of at most {limit}: {reason}")
        else:
            more += 1
            print(f"test: expected at most {limit} skipped because of '{reason}' in {listed}, got {len(names)}: "
                  f"{', '.join(dict.fromkeys(names))}")

    codes = collections.Counter(test["code"] for test in tests)
    passed = codes["PASS"] + codes["XFAIL"] + codes["FLAKYPASS"]
    skipped = codes["UNSUPPORTED"]
    failed = codes.total() - passed - skipped + more
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
