"""Finds the names of all ISA levels of attnc, for tests that try every level."""
import json, subprocess

# A library without bf16 has no code for the levels that differ from other levels only in instructions for bf16.
MODULE = "func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> { return %x : tensor<4xbf16> }\n"


def find_levels(folder):
    """Compiles a module for all levels into a folder, and returns the names of the levels in its manifest."""
    (folder / "levels.mlir").write_text(MODULE)
    subprocess.run(["attnc", folder / "levels.mlir", "-o", folder / "levels.so", "--target=all"], check=True)
    manifest = json.loads((folder / "levels.json").read_text())
    return [level["level"] for level in manifest["functions"][0]["levels"]]
