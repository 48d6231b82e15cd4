# The version of attn. All CMake projects in this repository include this file, and both pyproject.toml files read it.
set(attn_version 0.2.0)
