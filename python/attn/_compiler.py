"""Runs the programs of the compiler, and caches the libraries that they write."""

import functools
import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from attn._kernel import error


@functools.cache
def find(program):
    """Returns the path of a program of the compiler, found in $ATTN_BIN, in the package attn-compiler, or on PATH."""
    folders = [os.environ["ATTN_BIN"]] if "ATTN_BIN" in os.environ else []
    spec = importlib.util.find_spec("attn_compiler")
    if spec and spec.submodule_search_locations:
        folders += [os.path.join(spec.submodule_search_locations[0], "bin")]
    found = shutil.which(program, path=os.pathsep.join(folders + [os.environ.get("PATH", os.defpath)]))
    if not found:
        raise error(f"expected the program {program}: install the package attn-compiler, put the program on PATH, or name its "
                    "folder in ATTN_BIN", "COMPILE")
    return found


@functools.cache
def identity():
    """Returns a string that differs between builds of attnc."""
    status = os.stat(find("attnc"))
    return f"{os.path.realpath(find('attnc'))} {status.st_size} {status.st_mtime_ns}"


def cpu():
    """Returns lines of /proc/cpuinfo. They differ between CPUs for which the target `native` means different code."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]


def folder():
    """Returns the folder of the cache: $ATTN_CACHE, or the folder attn in the user's cache folder."""
    named = os.environ.get("ATTN_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "attn")
    return pathlib.Path(named).expanduser().absolute()  # absolute, because the program may change its working folder


def run(program, arguments, progress=None):
    """Runs `program` and returns its output. If `program` fails, raises attn.Error with its message.

    Prints `progress` if `program` runs for more than a second.
    """
    process = subprocess.Popen([find(program), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    began, is_shown = time.monotonic(), False
    while True:
        try:
            output, errors = process.communicate(timeout=1)
            break
        except subprocess.TimeoutExpired:
            if progress and (sys.stderr.isatty() or not is_shown):
                print(f"\r{progress} ({time.monotonic() - began:.0f} s)", end="" if sys.stderr.isatty() else "\n", flush=True,
                      file=sys.stderr)
                is_shown = True
        except BaseException:
            process.kill()
            process.wait()
            raise
    if is_shown:
        end = "\r" if sys.stderr.isatty() else ""
        print(f"{end}{progress}: done in {time.monotonic() - began:.1f} s", file=sys.stderr)
    if process.returncode:
        raise error(errors.strip().removeprefix(f"{program}: ") or f"{program} ended with status {process.returncode}", "COMPILE")
    return output


_SUMS = "sums.json"  # the file of an entry with the hashes of the other files


def _hashes(entry):
    """Returns the hash of each file of an entry of the cache."""
    hashes = {}
    for path in entry.iterdir():
        if path.name != _SUMS:
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
            hashes[path.name] = digest.hexdigest()
    return hashes


def _is_whole(entry):
    """Whether an entry of the cache has the files that were written, unchanged."""
    try:
        return json.loads((entry / _SUMS).read_text()) == _hashes(entry)
    except (OSError, ValueError):
        return False


def _synchronize(path):
    """Waits until a file or folder is on the disk, so that a crash of the machine does not leave half of it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cached(parts, fill):
    """Returns the folder in the cache for a key that consists of `parts`.

    If there is no such folder, or its files are damaged, calls `fill` with a temporary folder to write to, and renames
    the temporary folder.
    """
    key = hashlib.sha256()
    for part in parts:
        part = part if isinstance(part, bytes) else repr(part).encode()
        key.update(len(part).to_bytes(8, "little") + part)
    place = folder() / key.hexdigest()
    if not _is_whole(place):
        try:
            shutil.rmtree(place, ignore_errors=True)
            folder().mkdir(parents=True, exist_ok=True)
            made = pathlib.Path(tempfile.mkdtemp(prefix="new-", dir=folder()))
        except OSError as reason:
            raise error(f"cannot write to the cache '{folder()}': {reason.strerror}; set ATTN_CACHE to a writable "
                        "folder", "FILE") from None
        try:
            fill(made)
            (made / _SUMS).write_text(json.dumps(_hashes(made)))
            for path in (*made.iterdir(), made):
                _synchronize(path)
            made.rename(place)
        except OSError as reason:
            if not _is_whole(place):  # otherwise another process has made the folder meanwhile
                raise error(f"cannot write to the cache '{folder()}': {reason.strerror}; set ATTN_CACHE to a writable "
                            "folder", "FILE") from None
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return place


def clear_cache() -> None:
    """Removes all compiled libraries from the cache ($ATTN_CACHE, by default the folder attn in the user's cache folder).

    Kernels that are in use keep working.
    """
    shutil.rmtree(folder(), ignore_errors=True)
