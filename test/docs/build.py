"""Applies a page of patches to a copy of the tree, and builds programs of the copy.

    build.py PAGE COPY PROGRAM... [-- SOURCE...]

`git apply` reads the patches from the page itself. The script compiles the sources that the patches change, and each
SOURCE, which includes code that a changed TableGen file generates. Everything else comes from the build of the original
tree, which stays unchanged. A new source must be listed in a CMake file, and is compiled with the flags of a source in
the same folder.
"""

import pathlib
import re
import shutil
import subprocess
import sys


def run(command, folder):
    result = subprocess.run(command, cwd=folder, shell=isinstance(command, str), text=True, capture_output=True)
    if result.returncode:
        sys.exit(f"{command}\n{result.stdout}{result.stderr}")
    return result.stdout


def neighbour(source, known):
    return next(other for other in known if pathlib.Path(other).parent == pathlib.Path(source).parent)


page, copy = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
names = sys.argv[3:] + ["--"]
programs, more = names[: names.index("--")], names[names.index("--") + 1 : -1]
root = page.parent.parent
build = pathlib.Path(shutil.which("attnc")).resolve().parent.parent

shutil.rmtree(copy, ignore_errors=True)
shutil.copytree(root, copy, ignore=lambda folder, names: {"build", ".git"} if folder == str(root) else [])
run(["git", "init", "-q"], copy)
run(["git", "apply", str(page)], copy)
changed = [line.split("\t")[2] for line in run(["git", "apply", "--numstat", str(page)], copy).splitlines()]
print("\n".join(changed))
sources = [path for path in changed if path.endswith(".cpp")] + more

commands = run(["ninja", "-t", "commands", *programs], build).splitlines()
for line in commands:
    found = re.match(rf"cd {build}/(\S+) && (\S+-tblgen .* {root}/(\S+)/\w+\.td) .*? -o (\S+)", line)
    if found and any(path.endswith(".td") and path.rpartition("/")[0] == found[3] for path in changed):
        generated = copy / "build" / found[1] / found[4]
        generated.parent.mkdir(parents=True, exist_ok=True)
        run(f"{found[2].replace(str(root), str(copy))} -o {generated}", copy)

compiles = {}
for line in commands:
    if found := re.search(rf" -o (\S+) -c {root}/(\S+)$", line):
        compiles.setdefault(found[2], (found[1], line))
replaced = {}  # paths in link commands
for source in sources:
    known = source if source in compiles else neighbour(source, compiles)
    if source != known:
        places = [folder / "CMakeLists.txt" for folder in (copy / source).parents if folder.is_relative_to(copy)]
        if not any(str((copy / source).relative_to(place.parent)) in place.read_text().split()
                   for place in places if place.exists()):
            sys.exit(f"expected a CMake file that names {source}, got none")
    was, line = compiles[known]
    compiled = copy / "build" / f"{source}.o"
    compiled.parent.mkdir(parents=True, exist_ok=True)
    line = line.replace(was, str(compiled)).replace(f"{root}/{known}", f"{copy}/{source}")
    run(line.replace(f" -I{root}", f" -I{copy} -I{copy}/build -I{root}", 1), build)

    library = "lib/lib" + re.search(r"([\w-]+)\.dir/", was)[1] + ".a"
    if not (build / library).exists():
        replaced[was] = compiled
        continue
    if library not in replaced:
        (copy / "build" / "lib").mkdir(exist_ok=True)
        replaced[library] = shutil.copy(build / library, copy / "build" / library)
    run(["llvm-ar", "r", replaced[library], compiled], copy)

for program in programs:
    link = next(line for line in commands if f" -o bin/{program} " in line)
    link = link.replace(f"bin/{program}", f"{copy}/{program}")
    for was, now in replaced.items():
        link = re.sub(rf"(?<=[ ,]){was}(?=[ ,])", str(now), link)
    run(link, build)
