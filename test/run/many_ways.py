"""many_ways.py FOLDER: checks that graphs with 2^48 paths from the last op to the first compile within 20 seconds.

There are so many paths because each of 48 steps reads the result of the previous step twice.
"""

import os
import subprocess
import sys

COUNT = 48
TYPE = "tensor<8x8xf32>"
ATTENTION = f"""#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#m = affine_map<(q, k, d, e) -> (q, k)>
#o = affine_map<(q, k, d, e) -> (q, e)>
func.func @f(%x: {TYPE}) -> {TYPE} {{"""


def end_of_attention(captures, mask, maps, score):
    return f"""  %e = tensor.empty() : {TYPE}
  %r = attn.attention ins(%x, %x, %x : {TYPE}, {TYPE}, {TYPE}) {captures} outs(%e : {TYPE}) {mask}
    {{indexing_maps = [{maps}], scale = 0.5 : f32}} {score} -> {TYPE}
  return %r : {TYPE}
}}"""


def sums():
    """Returns a function that adds a tensor to its own transpose, COUNT times."""
    lines = [f"func.func @f(%x0: {TYPE}) -> {TYPE} {{", f"  %e = tensor.empty() : {TYPE}"]
    for i in range(COUNT):
        lines.append(f"""  %x{i + 1} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}} ins(%x{i}, %x{i} : {TYPE}, {TYPE}) outs(%e : {TYPE}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }} -> {TYPE}""")
    return "\n".join(lines + [f"  return %x{COUNT} : {TYPE}", "}"])


def formula():
    """Returns an attention with a mask that linalg.generic computes from positions, with integers modulo 2^32."""
    lines = [ATTENTION, """  %me = tensor.empty() : tensor<8x8xi1>
  %three = arith.constant 3 : i32
  %m = linalg.generic {indexing_maps = [affine_map<(q, k) -> (q, k)>], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<8x8xi1>) {
  ^bb0(%o: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a = arith.index_cast %i : index to i32
    %b = arith.index_cast %j : index to i32
    %x0 = arith.addi %a, %b : i32"""]
    for i in range(COUNT):
        lines.append(f"    %y{i} = arith.addi %x{i}, %a : i32\n    %x{i + 1} = arith.muli %x{i}, %y{i} : i32")
    lines.append(f"""    %t = arith.cmpi slt, %x{COUNT}, %three : i32
    linalg.yield %t : i1
  }} -> tensor<8x8xi1>""")
    return "\n".join(lines + [end_of_attention("captures(%m : tensor<8x8xi1>)", "mask(#attn.dense<0>)",
                                               "#q, #k, #v, #m, #o", "")])


def region(first, step, last):
    """Returns an attention whose score region computes a condition in COUNT steps."""
    lines = ["score {", "    ^bb0(%q: index, %k: index, %s: f32):", "      %inf = arith.constant 0xFF800000 : f32"]
    lines += [first, *(step.format(this=i, next=i + 1) for i in range(COUNT)), last.format(last=COUNT)]
    lines.append("      %t = arith.select %c, %s, %inf : f32\n      attn.yield %t : f32 }")
    return "\n".join([ATTENTION, end_of_attention("", "", "#q, #k, #v, #o", "\n".join(lines))])


CASES = {
    "sums": sums(),
    "formula": formula(),
    # The sum is 2^48 k, which is 0 modulo 2^32, so no key is hidden.
    "doubled": region("      %x0 = arith.index_cast %k : index to i32\n      %zero = arith.constant 0 : i32",
                      "      %x{next} = arith.addi %x{this}, %x{this} : i32",
                      "      %c = arith.cmpi sle, %x{last}, %zero : i32"),
}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, text in CASES.items():
        path = f"{folder}/{name}.mlir"
        with open(path, "w") as file:
            file.write(text)
        subprocess.run(["attnc", path, "-o", f"{folder}/{name}.so", "--target=x86-64-v3"], check=True, timeout=20)
        if name == "doubled":
            subprocess.run(["attn-run", path, "--reference"], check=True, timeout=20)


if __name__ == "__main__":
    main(*sys.argv[1:])
