"""Reads PTX, the assembly of NVIDIA GPUs, as LLVM writes it: kernels, their parameters and their instructions."""
import re
from dataclasses import dataclass, field


@dataclass
class Instruction:
    text: str
    opcode: str  # with all its suffixes
    operands: list  # of str; a vector operand is a list
    predicate: str = None  # a register; the instruction runs where it is true, or false if `negated`
    negated: bool = False


@dataclass
class Kernel:
    name: str
    parameters: dict = field(default_factory=dict)  # name: (offset, bytes)
    parameter_bytes: int = 0
    registers: dict = field(default_factory=dict)  # prefix, such as %rd: (type, count)
    instructions: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)  # name: number of an instruction
    joins: dict = field(default_factory=dict)  # number of a conditional branch: where its two paths meet again


@dataclass
class Program:
    target: str
    kernels: dict
    shared: set  # names of variables at the beginning of dynamic shared memory
    constants: dict  # name: the bytes of an array in global memory
    addresses: dict = field(default_factory=dict)  # name: the address of the array


def split_operands(text):
    """Returns the operands of an instruction, which commas outside brackets and braces separate."""
    operands, depth, start = [], 0, 0
    for i, character in enumerate(text + ","):
        if character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            operand = text[start:i].strip()
            if operand.startswith("{"):
                operand = [part.strip() for part in operand[1:-1].split(",")]
            if operand:
                operands.append(operand)
            start = i + 1
    return operands


def parse_instruction(text):
    predicate = re.match(r"@(!?)(%\w+)\s+", text)
    body = text[predicate.end():] if predicate else text
    opcode, _, rest = body.replace("\t", " ").partition(" ")
    instruction = Instruction(text, opcode, split_operands(rest.strip()))
    if predicate:
        instruction.negated, instruction.predicate = bool(predicate[1]), predicate[2]
    return instruction


def parse_parameters(text, kernel):
    offset = 0
    for parameter in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.([a-z]+)(\d+)\s+(?:\.ptr\s+.*\s)?(\w+)(?:\[(\d+)\])?", parameter)
        bytes_each = int(match[3]) // 8
        alignment, size = int(match[1] or bytes_each), bytes_each * int(match[5] or 1)
        offset = -(-offset // alignment) * alignment
        kernel.parameters[match[4]] = (offset, size)
        offset += size
    kernel.parameter_bytes = offset


def parse_kernel(name, parameters, body):
    kernel = Kernel(name)
    parse_parameters(parameters, kernel)
    for statement in re.split(r"(?<=[;:])\s", body):
        statement = " ".join(statement.split()).strip("{} ") if statement.strip() in "{}" else " ".join(statement.split())
        if not statement:
            continue
        if statement.endswith(":"):
            kernel.labels[statement[:-1]] = len(kernel.instructions)
            continue
        statement = statement.rstrip(";").strip()
        register = re.fullmatch(r"\.reg \.(\w+) (%\w+)<(\d+)>", statement)
        if register:
            kernel.registers[register[2]] = (register[1], int(register[3]))
        elif statement.startswith(".pragma") or not statement:
            continue
        elif statement.startswith("."):
            raise ValueError(f"expected an instruction or a register, got '{statement}'")
        else:
            kernel.instructions.append(parse_instruction(statement))
    kernel.joins = find_joins(kernel)
    return kernel


def parse(text):
    text = re.sub(r"//[^\n]*", "", text)
    kernels = {}
    for match in re.finditer(r"\.visible \.entry (\w+)\((.*?)\)(.*?)\n\{\n(.*?)\n\}", text, re.DOTALL):
        kernels[match[1]] = parse_kernel(match[1], match[2], match[4])
    shared = set(re.findall(r"\.extern \.shared \.align \d+ \.b8 (\w+)\[\]", text))
    constants = {name: bytes(int(value) for value in values.split(","))
                 for name, values in re.findall(r"\.global \.align \d+ \.b8 (\w+)\[\d+\] = \{([\d, ]+)\};", text)}
    return Program(re.search(r"\.target (\w+)", text)[1], kernels, shared, constants)


def successors(kernel, i):
    """Returns the instructions that can follow instruction i; the number of instructions stands for the end."""
    instruction, end = kernel.instructions[i], len(kernel.instructions)
    if instruction.opcode.startswith("bra"):
        target = kernel.labels[instruction.operands[0]]
        return [target] if instruction.predicate is None else [target, i + 1]
    if instruction.opcode in ("ret", "exit", "trap"):
        return [end] if instruction.predicate is None else [end, i + 1]
    return [i + 1]


def find_joins(kernel):
    """Returns, for each conditional branch, the first instruction that is on every path from the branch to the end.

    The algorithm works on basic blocks. A set of blocks is an integer with one bit for each block.
    """
    end = len(kernel.instructions)
    follows = [successors(kernel, i) for i in range(end)]
    leaders = sorted({0, end} | {t for i in range(end) for t in follows[i] if follows[i] != [i + 1]}
                     | {i + 1 for i in range(end) if follows[i] != [i + 1]} | set(kernel.labels.values()))
    number = {leader: block for block, leader in enumerate(leaders)}
    last = [(leaders[block + 1] - 1 if block + 1 < len(leaders) else None) for block in range(len(leaders))]
    final = number[end]
    after = [None if block == final else [number[t] for t in follows[last[block]]] for block in range(len(leaders))]
    # The blocks on every path from a block to the end.
    always = [(1 << len(leaders)) - 1] * len(leaders)
    always[final] = 1 << final
    changed = True
    while changed:
        changed = False
        for block in reversed(range(len(leaders))):
            if after[block] is None:
                continue
            common = -1
            for next_block in after[block]:
                common &= always[next_block]
            common |= 1 << block
            if common != always[block]:
                always[block], changed = common, True
    joins = {}
    for block in range(len(leaders)):
        if after[block] is None or len(set(after[block])) < 2:
            continue
        rest = always[block] & ~(1 << block)
        # The nearest of these blocks is the one from which all others are still ahead.
        nearest = next(other for other in range(len(leaders)) if rest >> other & 1 and always[other] == rest)
        joins[last[block]] = leaders[nearest]
    return joins
