"""Exports a row of rows.py, and computes its expected result. `export.py ROW FOLDER` writes these files to FOLDER:

    expected.npy    the result in float64, which PyTorch computes
    input0.npy ...  the inputs of the module
    model.onnx      the module, by torch.onnx.export, for ONNX Runtime
    model.xml       the module, by openvino.convert_model, for OpenVINO, with its weights in model.bin

If an export fails, its reason is in model.onnx.failed or model.xml.failed instead.
"""

import pathlib
import sys

import numpy as np
import torch

import rows


class ExpandedMask(torch.nn.Module):
    """Expands the mask over the queries, because ONNX Runtime's op Attention does not broadcast it."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, q, k, v, mask):
        return self.module(q, k, v, mask.expand(-1, -1, q.shape[2], -1))


def export_onnx(module, inputs, path):
    module = ExpandedMask(module) if len(inputs) == 4 else module
    torch.onnx.export(module, inputs, path, dynamo=True, opset_version=23, verbose=False)


def export_openvino(module, inputs, path):
    import openvino

    model = openvino.convert_model(module, example_input=inputs, input=[tuple(tensor.shape) for tensor in inputs])
    openvino.save_model(model, path, compress_to_fp16=False)


def main(row, folder):
    module, inputs = rows.ROWS[row].build()
    module.eval()
    for i, tensor in enumerate(inputs):
        np.save(folder / f"input{i}.npy", tensor.numpy())
    with torch.no_grad():
        for name, export in (("model.onnx", export_onnx), ("model.xml", export_openvino)):
            try:
                export(module, inputs, folder / name)
            except Exception as reason:
                first = str(reason).strip().partition("\n")[0]
                (folder / f"{name}.failed").write_text(f"{type(reason).__name__}: {first}")
        wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
        np.save(folder / "expected.npy", module.double()(*wide).numpy())


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
