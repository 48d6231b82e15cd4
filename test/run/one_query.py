"""one_query.py FOLDER: checks attentions whose number of queries is known only at the call.

Such an attention has a second plan for one query. The results for 1 and 9 queries are compared with float64 at the
lowest ISA level, and at one of the other levels in turn.
"""
import json
import pathlib
import subprocess
import sys

from decode import KINDS, TOLERANCE
from levels import RUN, TARGETS, find_levels

# Each head of keys has two heads of queries.
ATTENTION = """
#q = affine_map<(b, h, g, q, k, d, e) -> (b, h, g, q, d)>
#k = affine_map<(b, h, g, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, g, q, k, d, e) -> (b, h, k, e)>
#s = affine_map<(b, h, g, q, k, d, e) -> (h, q)>
#n = affine_map<(b, h, g, q, k, d, e) -> (b)>
#i = affine_map<(b, h, g, q, k, d, e) -> (h, q, k)>
#m = affine_map<(b, h, g, q, k, d, e) -> (b, k)>
#o = affine_map<(b, h, g, q, k, d, e) -> ({out})>
func.func @f(%q: tensor<2x3x2x?x20x{t}> {{attn.name = "q"}}, %k: tensor<2x3x?x20x{t}> {{attn.name = "k"}}, %v: tensor<2x3x?x12x{t}>{inputs}) -> {result} {{
  %axis = arith.constant 3 : index
  %queries = tensor.dim %q, %axis : tensor<2x3x2x?x20x{t}>
  %e = tensor.empty(%queries) : {result}
  %o = attn.attention ins(%q, %k, %v : tensor<2x3x2x?x20x{t}>, tensor<2x3x?x20x{t}>, tensor<2x3x?x12x{t}>)
    {captures} outs(%e : {result}) {mask} {{indexing_maps = [#q, #k, #v, {maps}#o], scale = 0.3 : f32}} {score} -> {result}
  return %o : {result}
}}"""
FORMS = [(kind, "f32", True) for kind in KINDS] + [("causal", "f16", True), ("padding", "bf16", True), ("causal", "f32", False)]

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
levels = find_levels(folder)
for i, (kind, element, is_contiguous) in enumerate(FORMS):
    inputs, captures, maps, mask, score = KINDS[kind]
    inputs, captures = (text.format(q="?", t=element) for text in (inputs, captures))
    score = score.replace("%hi: index,", "%hi: index, %gi: index,")
    out, result = (("b, h, g, q, e", "tensor<2x3x2x?x12x{}>") if is_contiguous else ("b, q, h, g, e", "tensor<2x?x3x2x12x{}>"))
    path = folder / f"{kind}.mlir"
    path.write_text(ATTENTION.format(t=element, out=out, result=result.format(element), inputs=inputs, captures=captures,
                                     maps=maps, mask=mask, score=score))
    report = folder / "report.json"
    subprocess.run(["attnc", path, "-o", folder / "f.so", f"--opt-report={report}", TARGETS], check=True)
    for level in json.loads(report.read_text())["levels"]:
        (attention,) = level["functions"][0]["attentions"]
        assert attention["one_query"]["query_tile"] < attention["query_tile"], (kind, level["level"], attention)
    right = set()
    for level in sorted({levels[i % len(levels)], levels[-1]}):
        for queries in (1, 9):
            command = [*RUN, path, "--reference", f"--level={level}", f"--tolerance={TOLERANCE[element]}",
                       f"--dim=q.3={queries}", "--dim=k.2=77"]
            run = subprocess.run(command, capture_output=True, text=True)
            if "expected a level that this CPU runs" in run.stderr:
                break
            assert run.returncode == 0, (kind, element, level, queries, run.stdout + run.stderr)
            right.add(queries)
    print(f"{kind} of {element}: right with {right} queries")
