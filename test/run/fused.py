"""Checks modules that must be fused: compiles what torch.export makes of them, and compares their results with torch's."""
import subprocess

import numpy as np
import torch


def check(folder, name, module, inputs, targets=("x86-64-v3",), decompose=True, dynamic_shapes=None, reference=False):
    """With `decompose`, also checks the graph of core aten ops; with `reference`, also runs the graph in the reference."""
    exported = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes)
    arguments = []
    for i, tensor in enumerate(inputs):
        np.save(folder / f"{i}.npy", tensor.numpy())
        arguments.append(f"--input={folder / f'{i}.npy'}")
    np.save(folder / "want.npy", module(*inputs).detach().numpy())
    forms = {"": exported, **({"-decomposed": exported.run_decompositions()} if decompose else {})}
    for form, program in forms.items():
        path = folder / f"{name}{form}.pt2"
        torch.export.save(program, path)
        for target in targets:
            subprocess.run(["attnc", path, "-o", path.with_suffix(".so"), f"--target={target}", "--require-fused"], check=True)
            subprocess.run(["attn-run", path.with_suffix(".so"), *arguments, f"--expect={folder / 'want.npy'}"], check=True)
        if reference:
            subprocess.run(["attn-run", path, "--reference", *arguments], check=True)
