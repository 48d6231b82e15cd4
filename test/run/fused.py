"""Checks modules that must be fused: compiles what torch.export makes of them, and compares their results with torch's."""
import subprocess

import numpy as np
import torch


def check(folder, name, module, inputs, targets=("x86-64-v3",), decompose=True, dynamic_shapes=None, reference=False, others=()):
    """With `decompose`, also checks the graph of core aten ops; with `reference`, also runs the graph in the reference.
    `others` are more inputs, of other sizes."""
    exported = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes)
    calls = []
    for number, tensors in enumerate([inputs, *others]):
        arguments = []
        for i, tensor in enumerate(tensors):
            np.save(folder / f"{number}-{i}.npy", tensor.numpy())
            arguments.append(f"--input={folder / f'{number}-{i}.npy'}")
        wanted = module(*tensors)
        for i, want in enumerate(wanted if isinstance(wanted, tuple) else (wanted,)):
            np.save(folder / f"want-{number}-{i}.npy", want.detach().numpy())
            arguments.append(f"--expect={folder / f'want-{number}-{i}.npy'}")
        calls.append(arguments)
    forms = {"": exported, **({"-decomposed": exported.run_decompositions()} if decompose else {})}
    for form, program in forms.items():
        path = folder / f"{name}{form}.pt2"
        torch.export.save(program, path)
        for target in targets:
            subprocess.run(["attnc", path, "-o", path.with_suffix(".so"), f"--target={target}", "--require-fused"], check=True)
            for arguments in calls:
                subprocess.run(["attn-run", path.with_suffix(".so"), *arguments], check=True)
        if reference:
            given = [argument for argument in calls[0] if argument.startswith("--input")]
            subprocess.run(["attn-run", path, "--reference", *given], check=True)
