"""The levels that attnc has, as tests need them to try all."""
import json, subprocess

MODULE = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n"


def find_levels(folder):
    """Compiles a module for all levels into a folder, and reads their names from the manifest."""
    (folder / "levels.mlir").write_text(MODULE)
    subprocess.run(["attnc", folder / "levels.mlir", "-o", folder / "levels.so", "--target=all"], check=True)
    manifest = json.loads((folder / "levels.json").read_text())
    return [level["level"] for level in manifest["functions"][0]["levels"]]
