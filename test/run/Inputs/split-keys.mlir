// Splits the keys of each step into 4 parts, one for each task, and each part into tiles of 32 keys.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["attn.online_step"]} in %module : (!transform.any_op) -> !transform.any_op
    %fills:4, %part, %merge, %tasks = transform.structured.tile_reduction_using_forall %step by num_threads = [4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                !transform.any_op, !transform.any_op)
    %tile, %loop = transform.structured.tile_using_for %part tile_sizes [32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
