# The configuration of lit. The folder of a test says what kind of test it is. CONTRIBUTING.md says how to name a test.
import os
import shutil
import sys

import lit.formats
from lit.llvm import llvm_config

config.name = "attn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.attn_build_dir, "test")
config.excludes = ["lit.cfg.py", "lit.site.cfg.py.in", "CMakeLists.txt", "Inputs", "cases", "upstream"]
if not lit_config.params.get("full"):  # scripts/test full
    slow = ("architectures", "attention", "cases", "differential", "generate", "maps", "programs", "run", "types", "zoo",
            "zoo-dynamic")
    config.excludes += [f"{test}-full.test" for test in slow]

llvm_config.with_system_environment(["HOME", "TMP", "TEMP", "ASAN_OPTIONS"])
# Tests find the same libraries on each machine.
for variable in list(config.environment):
    if variable.startswith("CUDA_") or variable in ("LIBRARY_PATH", "CPATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PKG_CONFIG_PATH"):
        del config.environment[variable]
llvm_config.use_default_substitutions()  # FileCheck, not, count
config.substitutions.append(("%python", sys.executable))
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.with_environment("PATH", os.path.join(config.attn_build_dir, "bin"), append_path=True)

config.substitutions.append(("%attn_bin", os.path.join(config.attn_build_dir, "bin")))

# Tests in install/ and examples/ install the package to a folder, and use it as users do.
config.substitutions.append(("%install", f"cmake --install {config.attn_build_dir} --prefix"))
flags = [f'"-DCMAKE_{language}_{key}={value}"' for language, values in config.attn_compilers.items()
         for key, value in values.items()]
config.substitutions.append(("%cmake", " ".join(["cmake -G Ninja -DCMAKE_BUILD_TYPE=Release", *flags])))
config.substitutions.append(("%cc", " ".join(config.attn_compilers["C"].values())))
config.substitutions.append(("%cxx", " ".join(config.attn_compilers["CXX"].values())))
# Kernels for GPUs run in an emulator, which a replacement for the CUDA driver calls.
gpu_driver = os.path.join(config.attn_build_dir, "test", "ptx", "driver")
emulator = os.path.join(config.test_source_root, "ptx", "emulator.py")
config.substitutions.append(("%gpu_driver", gpu_driver))
config.substitutions.append(("%gpu", f"env LD_LIBRARY_PATH={gpu_driver} 'ATTN_FAKE_EMULATOR={sys.executable} {emulator}'"))
# NVIDIA's assembler checks the kernels if it is on PATH, or if the environment variable ATTN_PTXAS names it.
if ptxas := os.environ.get("ATTN_PTXAS") or shutil.which("ptxas"):
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
if shutil.which("ptxas") and shutil.which("fatbinary"):
    config.available_features.add("fatbinary")
if torch := lit_config.params.get("torch"):  # scripts/test --torch DIR
    config.available_features.add("torch")
    config.substitutions.append(("%torch", os.path.join(torch, "bin", "python")))
with open("/proc/cpuinfo") as cpus:
    if "avx512_bf16" in cpus.read():  # x86-64-amx needs this feature, and tiles, which test/tiles/Tiles.cpp emulates
        config.available_features.add("tiles")
if all(shutil.which(program) for program in ("aarch64-linux-gnu-g++", "qemu-aarch64")):
    config.available_features.add("aarch64-emulation")
    # After %aarch64, scripts of test/run compile for AArch64 and run attn-call in QEMU.
    call = os.path.join(config.attn_build_dir, "test", "aarch64", "build", "attn-call")
    config.substitutions.append(("%aarch64", f"env ATTN_TEST_ARCHITECTURE=aarch64 'ATTN_TEST_RUNNER=qemu-aarch64 {call}'"))
    # scripts/test --aarch64 DIR names a folder with Debian's Python and NumPy for AArch64.
    if root := lit_config.params.get("aarch64"):
        config.available_features.add("aarch64-python")
        config.substitutions.append(("%emulated_python", os.path.join(root, "python")))
