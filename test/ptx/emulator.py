"""emulator.py FILE BASE BYTES: runs kernels for test/ptx/Driver.cpp.

FILE is the number of an open file that holds the BYTES bytes of device memory, whose addresses begin at BASE. The last
bytes are for constant arrays of modules. Standard input has requests, each a line followed by bytes. The answer to a
request is the line "ok", or the reason why the request failed. Of three launches of a kernel, the first completes
asynchronous copies and products at once, the second as late as possible, and the third completes copies at once and
products late.
"""
import collections
import mmap
import sys

import numpy as np

import machine
import program

file, base, size = (int(argument) for argument in sys.argv[1:4])
memory = np.frombuffer(mmap.mmap(file, size), np.uint8)
modules = {}
launches = collections.Counter()  # of each kernel
constants = []  # the address and the size of each constant array
ALIGNMENT = 256


def load(number, length):
    module = modules[number] = program.parse(sys.stdin.buffer.read(int(length)).decode())
    for name, content in module.constants.items():
        end = constants[-1][0] if constants else base + size
        module.addresses[name] = (end - len(content)) // ALIGNMENT * ALIGNMENT
        constants.append((module.addresses[name], len(content)))
        memory[module.addresses[name] - base:][:len(content)] = np.frombuffer(content, np.uint8)


def launch(number, name, count, threads, shared_bytes, argument_bytes, *spans):
    kernel = modules[number].kernels[name]
    arguments = bytearray(kernel.parameter_bytes)
    for (offset, _), size in zip(kernel.parameters.values(), argument_bytes.split(",")):
        arguments[offset:offset + int(size)] = sys.stdin.buffer.read(int(size))
    allocations = [tuple(int(part) for part in span.split(":")) for span in spans]
    device = machine.Memory("global", memory, base, allocations + constants)
    late, late_products = ((False, False), (True, True), (False, True))[launches[number, name] % 3]
    launches[number, name] += 1
    for block in range(int(count)):
        machine.Block(modules[number], kernel, block, int(threads), int(shared_bytes), arguments,
                      device, late, late_products, int(count)).run()


for line in sys.stdin.buffer:
    word, *arguments = line.decode().split()
    try:
        {"module": load, "launch": launch}[word](*arguments)
        answer = "ok"
    except Exception as error:
        answer = f"{type(error).__name__}: {error}".replace("\n", " ")
    print(answer, flush=True)
