// A name that formulas cannot have is fine where no formula needs it.
// RUN: attn-run %s --reference --dim '?.0=5' | FileCheck %s --check-prefix=RIGHT
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}

func.func @f(%x: tensor<?xf32> {attn.name = "?"}) -> tensor<?xf32> {
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
