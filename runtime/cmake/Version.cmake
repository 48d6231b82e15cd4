# The version of attn. All CMake projects in this repository include this file, and both files pyproject.toml read it.
set(attn_version 0.2.0)
