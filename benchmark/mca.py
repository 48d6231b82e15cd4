"""mca.py [--pipelines] [CPU...]: uses llvm-mca to predict the speed of CPUs for which LLVM has scheduling models.

Compiles products and attentions with attnc for AArch64, and finds their innermost loops in the assembly. For each CPU,
and for up to three of these loops per product or attention, prints the instructions that multiply, the cycles of an
iteration, and the bound: the cycles that the multiplications alone take in the same model. With --pipelines, prints the
parameters of #attn.pipelines instead: how many instructions of a kind start in a cycle, the latency of a multiply-add
that adds to the result of another one, and the time of the exponentials of one vector, in multiply-adds. attnc and
llvm-mca must be on PATH.
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


def per_cycle(instruction, cpu):
    """The number of independent instructions that start in a cycle; {} in their text is the number of a register."""
    return 24 / cycles([instruction.format(number) for number in range(24)], cpu)


def exponentials(assembly):
    """The basic block with the most exponentials, and their number. Each exponential has one shift by 23 bits."""
    blocks = [[]]
    for line in assembly.split("\n"):
        if re.match(r"\.LBB|\s+(b|b\.\w+|cbnz|cbz|tbnz|tbz)\s", line):
            blocks.append([])
        elif re.match(r"\s+[a-z]", line):
            blocks[-1].append(line)
    shifts = lambda block: sum(bool(re.search(r"\sshl\s.*#23$", line)) for line in block)
    block = max(blocks, key=shifts)
    return block, shifts(block)


def compile(text, target):
    with tempfile.TemporaryDirectory() as folder:
        module, output = pathlib.Path(folder) / "m.mlir", pathlib.Path(folder) / "m.s"
        module.write_text(text)
        subprocess.run(["attnc", module, "-o", output, f"--target={target}"], check=True)
        return output.read_text()


def print_pipelines(cpus):
    block, count = exponentials(compile(ATTENTION.format(t="f32"), "aarch64"))
    for cpu in cpus:
        multiplies = per_cycle("fmla v{}.4s, v30.4s, v31.s[0]", cpu)
        loads, stores = per_cycle("ldr q{}, [x0]", cpu), per_cycle("str q{}, [x0]", cpu)
        latency = cycles(["fmla v0.4s, v30.4s, v31.s[0]"], cpu)
        exponential = cycles(block, cpu) / count * multiplies
        print(f"{cpu}: multiplies = {multiplies:.1f}, loads = {loads:.1f}, stores = {stores:.1f}, "
              f"latency = {latency:.1f}, exponential = {exponential:.1f}")


def print_loops(cpus):
    for kind, template in [("product", MATMUL), ("attention", ATTENTION)]:
        for t, level in [("f32", "aarch64"), ("f16", "aarch64-fp16-bf16"), ("bf16", "aarch64-fp16-bf16")]:
            loops = {}
            for body in inner_loops(compile(template.format(t=t), level)):
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


def main(arguments):
    prints_pipelines = arguments[:1] == ["--pipelines"]
    cpus = arguments[prints_pipelines:] or ["cortex-a72", "neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1"]
    (print_pipelines if prints_pipelines else print_loops)(cpus)


main(sys.argv[1:])
