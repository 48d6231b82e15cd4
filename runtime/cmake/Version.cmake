# The version of attn. The CMake projects of the compiler, the runtime and attn-call include this file, and both
# pyproject.toml files read it.
set(attn_version 0.2.0)
