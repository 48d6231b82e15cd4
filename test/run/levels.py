"""The ISA levels of attnc, and the command that calls functions.

By default, levels and command are for this CPU. If ATTN_TEST_ARCHITECTURE names another architecture, such as aarch64,
the levels are those of this architecture, and ATTN_TEST_RUNNER is the command that runs attn-call in an emulator.
"""
import json, os, subprocess

ARCHITECTURE = os.environ.get("ATTN_TEST_ARCHITECTURE")
TARGETS = f"--target=all:{ARCHITECTURE}" if ARCHITECTURE else "--target=all"
RUN = ["attn-run", f"--runner={os.environ['ATTN_TEST_RUNNER']}"] if ARCHITECTURE else ["attn-run"]
# The level with instructions that add two products of bf16, and levels without them.
PAIRS = "aarch64-fp16-bf16" if ARCHITECTURE else "x86-64-v4-bf16"
NO_PAIRS = ["aarch64"] if ARCHITECTURE else ["x86-64-v4", "x86-64-v3"]
# If a function has bf16, attnc compiles different code for each level.
MODULE = "func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> { return %x : tensor<4xbf16> }\n"


def find_levels(folder):
    """Compiles a module for all levels into a folder, and returns the names of the levels, which the manifest lists."""
    (folder / "levels.mlir").write_text(MODULE)
    subprocess.run(["attnc", folder / "levels.mlir", "-o", folder / "levels.so", TARGETS], check=True)
    manifest = json.loads((folder / "levels.json").read_text())
    return [level["level"] for level in manifest["functions"][0]["levels"]]
