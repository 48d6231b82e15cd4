"""mca.py CPU...: predicts the speed of the inner loops of products on CPUs of which LLVM has a model.

Compiles products and attentions with attnc for AArch64, finds their innermost loops in the assembly, and runs llvm-mca
on the largest of them. Prints, for each loop and CPU, the instructions that multiply, the cycles of an iteration, and
the bound: the cycles that the multiplications alone take in the same model. attnc and llvm-mca must be on PATH.
"""
import pathlib, re, subprocess, sys, tempfile

MULTIPLIES = re.compile(r"\s(fmla|fmlal|bfdot|bfmmla)\s")
MATMUL = """func.func @f(%x: tensor<192x256x{t}>, %w: tensor<256x192x{t}> {{attn.name = "w", attn.weight}}) -> tensor<192x192xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<192x192xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<192x192xf32>) -> tensor<192x192xf32>
  %o = linalg.matmul ins(%x, %w : tensor<192x256x{t}>, tensor<256x192x{t}>) outs(%s : tensor<192x192xf32>) -> tensor<192x192xf32>
  return %o : tensor<192x192xf32>
}}
"""
ATTENTION = """func.func @f(%q: tensor<4x256x64x{t}>, %k: tensor<4x256x64x{t}>, %v: tensor<4x256x64x{t}>) -> tensor<4x256x64x{t}> {{
  %e = tensor.empty() : tensor<4x256x64x{t}>
  %o = attn.attention ins(%q, %k, %v : tensor<4x256x64x{t}>, tensor<4x256x64x{t}>, tensor<4x256x64x{t}>)
    outs(%e : tensor<4x256x64x{t}>)
    {{indexing_maps = [affine_map<(h, q, k, d, e) -> (h, q, d)>, affine_map<(h, q, k, d, e) -> (h, k, d)>,
                      affine_map<(h, q, k, d, e) -> (h, k, e)>, affine_map<(h, q, k, d, e) -> (h, q, e)>],
     scale = 0.125 : f32}} -> tensor<4x256x64x{t}>
  return %o : tensor<4x256x64x{t}>
}}
"""


def inner_loops(assembly):
    """The innermost loops that multiply, each as a list of its instructions."""
    lines, labels, loops = assembly.split("\n"), {}, []
    for number, line in enumerate(lines):
        if label := re.match(r"(\.LBB\S+):", line):
            labels[label[1]] = number
        if jump := re.search(r"\s(?:b|b\.\w+|cbnz|cbz|tbnz|tbz)\s.*?(\.LBB\S+)$", line):
            begin = labels.get(jump[1])
            if begin is None or any(re.match(r"\.LBB", inner) for inner in lines[begin + 1:number]):
                continue
            body = [inner for inner in lines[begin + 1:number + 1] if re.match(r"\s+[a-z]", inner)]
            if any(MULTIPLIES.search(inner) for inner in body):
                loops.append(body)
    return loops


def cycles(instructions, cpu, iterations=400):
    """The cycles that an iteration takes in LLVM's model of `cpu`."""
    text = "\n".join(re.sub(r"\.LBB\S+", "target", line) for line in instructions) + "\ntarget:\n"
    attributes = "+neon,+fullfp16,+fp16fml,+bf16"
    command = ["llvm-mca", "-mtriple=aarch64", f"-mcpu={cpu}", f"-mattr={attributes}", f"-iterations={iterations}"]
    said = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", said)[1]) / iterations


def main(cpus):
    with tempfile.TemporaryDirectory() as folder:
        module, output = pathlib.Path(folder) / "m.mlir", pathlib.Path(folder) / "m.s"
        for kind, template in [("product", MATMUL), ("attention", ATTENTION)]:
            for t, level in [("f32", "aarch64"), ("f16", "aarch64-fp16-bf16"), ("bf16", "aarch64-fp16-bf16")]:
                module.write_text(template.format(t=t))
                subprocess.run(["attnc", module, "-o", output, f"--target={level}"], check=True)
                loops = {}
                for body in inner_loops(output.read_text()):
                    count = sum(bool(MULTIPLIES.search(line)) for line in body)
                    name = MULTIPLIES.search("\n".join(line for line in body if MULTIPLIES.search(line)))[1]
                    if count >= 16:
                        loops.setdefault((count, name, len(body)), body)
                for (count, name, length), body in sorted(loops.items(), reverse=True)[:3]:
                    spills = sum("[sp" in line for line in body)
                    print(f"{kind} of {t}: {count} {name} in {length} instructions, {spills} accesses of the stack")
                    for cpu in cpus:
                        # The bound is the time of the loop without its other instructions.
                        bound = cycles([line for line in body if MULTIPLIES.search(line)], cpu)
                        took = cycles(body, cpu)
                        print(f"  {cpu}: {took:.1f} cycles, bound {bound:.1f}, {100 * bound / took:.0f} %")


main(sys.argv[1:] or ["cortex-a72", "neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1"])
