"""environment.py FOLDER: tests the script in FOLDER/environment, with packages that it makes in FOLDER."""
import os
import pathlib
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(sys.argv[1])
MADE = ROOT / "made"  # the environment


def make_wheel(name, version, requires=""):
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(ROOT / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def run(versions, *texts, folder=MADE, complete=True):
    """Runs the script with these versions. The output must contain all `texts`; the command must fail unless
    `complete`."""
    (ROOT / "versions.txt").write_text(versions)
    variables = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(ROOT)}
    command = [ROOT / "environment", folder, "whole"]
    result = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert complete == (result.returncode == 0) and all(text in result.stderr for text in texts), (versions, result)
    assert complete == (MADE / "versions.txt").exists(), (versions, result)
    return result.stderr


for version in "1.0", "2.0":
    make_wheel("whole", version, "Requires-Dist: part\n")
    make_wheel("part", version)

run("whole==3.0\n", "(constraint) whole==3.0", "made is not complete, because this failed: pip install", complete=False)
run("# The versions.\nwhole==1.0\n", "expected a version of each package in", "got none of part", complete=False)
run("# The versions.\nwhole==1.0\npart==1.0\n", "installing whole in")
(MADE / "mark").touch()
assert run("# The versions.\nwhole==1.0\npart==1.0\n") == ""
run("# The versions.\nwhole==2.0\npart==1.0\n", "installing whole in")
assert not (MADE / "mark").exists()
packages = MADE.glob("lib/*/site-packages/*.dist-info")
assert {"whole-2.0.dist-info", "part-1.0.dist-info"} <= {path.name for path in packages}

# Other folders stay as they are.
(ROOT / "other").mkdir()
(ROOT / "other/file").touch()
(MADE / "versions.txt").unlink()
run("whole==1.0\n", "expected a new folder or a Python environment, got", folder=ROOT / "other", complete=False)
assert (ROOT / "other/file").exists()
