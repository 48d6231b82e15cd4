"""stages.py MODEL FOLDER: checks that --from=<stage> accepts the file of that stage, but not those of other stages."""
import pathlib, re, subprocess, sys

model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
output = folder / "again.so"


def attnc(*arguments):
    return subprocess.run(["attnc", *map(str, arguments), "-o", output], capture_output=True, text=True)


assert not attnc(model, "--target=x86-64", f"--dump-stages={folder}").returncode
files = {path.stem.split("-")[1]: path for path in sorted(folder.glob("[1-9]-*"))}
assert len(files) == 9, files
for stage in files:
    for other, path in files.items():
        result = attnc(f"--from={stage}", path)
        if stage == other:
            assert not result.returncode and output.exists(), f"--from={stage} {path}: {result.stderr}"
            output.unlink()
            continue
        if stage == "emit":
            wanted = f"expected a file of stage emit, which ends in .ll, got '{path}'"
        elif other == "emit" and stage != "import":
            wanted = f"expected a file of stage {stage}, which ends in .mlir, got '{path}'"
        elif other == "emit":
            wanted = f"{path}: expected a file that ends in one of .mlir .pt2"
        else:
            wanted = f"expected a file of stage {stage}, got one of stage {other}"
        assert result.returncode == 1 and wanted in result.stderr, f"--from={stage} {path}: {result.stderr}"
        assert len(result.stderr.splitlines()) == 1 and not output.exists(), result.stderr
        print(stage, other)

# If a file has no attn.stage attribute, attnc assumes the stage that --from names. It may compile the file or report an
# error, but must not crash.
for other, path in files.items():
    unmarked = folder / f"unmarked-{other}{path.suffix}"
    text = path.read_text()
    unmarked.write_text(re.sub(r'attn\.stage = "\w+"(, )?', "", text))
    assert other == "emit" or unmarked.read_text() != text
    for stage in files:
        result = attnc(f"--from={stage}", unmarked)
        assert result.returncode in (0, 1), f"--from={stage} {unmarked}: {result.stderr}"
        assert result.returncode == 0 or stage != other, f"--from={stage} {unmarked}: {result.stderr}"
        print(stage, "unmarked", other, result.stderr.strip())
