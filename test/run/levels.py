"""The levels that attnc has, as tests need them to try all."""
import json, subprocess

# With bf16, each level has code of its own.
MODULE = "func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> { return %x : tensor<4xbf16> }\n"


def find_levels(folder):
    """Compiles a module for all levels into a folder, and reads their names from the manifest."""
    (folder / "levels.mlir").write_text(MODULE)
    subprocess.run(["attnc", folder / "levels.mlir", "-o", folder / "levels.so", "--target=all"], check=True)
    manifest = json.loads((folder / "levels.json").read_text())
    return [level["level"] for level in manifest["functions"][0]["levels"]]
