"""interface.py FOLDER: prints the options of the programs and the fields of the manifests (*.json) and reports
(*.report.json) in FOLDER, one per line.

A patch version keeps all of them. interface.txt holds this output, which scripts/compatibility compares for
two versions.
"""
import json
import pathlib
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def options(program):
    if program == "attn-call":
        return re.findall(r"^ *(--[a-z-]+=?)", run(program, "--help"), re.M)
    # Unlike --help, the completion script for bash lists hidden options too.
    return re.search(r"words='(-[^']*)'", run(program, "--generate=bash"))[1].split()


def fields(value, path):
    for item in value if isinstance(value, list) else []:
        yield from fields(item, path)
    for name, item in value.items() if isinstance(value, dict) else []:
        yield f"{path} {name}"
        yield from fields(item, f"{path} {name}")


lines = {f"{program} {option}" for program in ("attnc", "attn-run", "attn-call") for option in options(program)}
for file in pathlib.Path(sys.argv[1]).glob("*.json"):
    lines |= set(fields(json.loads(file.read_text()), "report" if file.name.endswith(".report.json") else "manifest"))
print(*sorted(lines), sep="\n")
