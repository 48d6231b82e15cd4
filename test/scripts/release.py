"""release.py FOLDER: tests scripts/release --check on versions that it commits to a Git repository in FOLDER.

FOLDER holds copies of the files that scripts/release --check reads.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])


def git(*arguments):
    identity = ["-c", "user.name=attn", "-c", "user.email=attn@example.org"]
    subprocess.run(["git", "-C", ROOT, *identity, *arguments], check=True)


def edit(path, pattern, text):
    path = ROOT / path
    after, count = re.subn(pattern, text, path.read_text(), count=1, flags=re.M)
    assert count, (path, pattern)
    path.write_text(after)


def commit(version, news):
    """Commits a version: the number, the date and the section of CHANGELOG.md with the text `news`."""
    edit("runtime/cmake/Version.cmake", r"version [0-9.]+\)", f"version {version})")
    edit("CITATION.cff", r"^version: .*\ndate-released: .*", f"version: {version}\ndate-released: 2031-02-03")
    # The earlier section names libattn.so.2. Only the first section counts.
    sections = f"## {version} (2031-02-03)\n\n{news}\n\n## 1.3.0 (2031-01-01)\n\nlibattn.so.2\n"
    (ROOT / "CHANGELOG.md").write_text(f"# Changes\n\n{sections}")
    git("add", ".")
    git("commit", "-q", "-m", version)


def check(version, *texts, passes=False):
    """Runs scripts/release --check. The output must contain all `texts`; the command must fail unless `passes`."""
    result = subprocess.run([ROOT / "scripts/release", "--check", version], capture_output=True, text=True)
    output = result.stdout + result.stderr
    assert passes == (result.returncode == 0) and all(text in output for text in texts), (version, texts, output)


def cases():
    check("1.4.1", "expected version 1.4.1 in runtime/cmake/Version.cmake, got set(attn_version 1.4.0)")
    (ROOT / "new.txt").touch()
    check("1.4.0", "expected a checkout without changes, got ?? new.txt")
    (ROOT / "new.txt").unlink()
    edit("CITATION.cff", "2031", "2030")
    git("commit", "-q", "-a", "-m", "another date")
    check("1.4.0", "expected the line 'date-released: 2031-02-03' in CITATION.cff, got none")
    edit("CITATION.cff", "2030", "2031")
    edit("CHANGELOG.md", r"2031-02-03", "unreleased")
    git("commit", "-q", "-a", "-m", "no date")
    check("1.4.0", "expected the first section of CHANGELOG.md to be '1.4.0 (YYYY-MM-DD)', got '## 1.4.0 (unreleased)'")
    edit("CHANGELOG.md", "unreleased", "2031-02-03")
    git("commit", "-q", "-a", "-m", "a date")
    check("1.4.0", "there is no earlier version", passes=True)
    git("tag", "v1.4.0")

    # A patch version may add functions, options, and fields at the end of a struct that has a `size` field.
    edit("runtime/attn.h", "^} attn_call_options;", "  void *more;\n} attn_call_options;")
    edit("runtime/attn.h", "^ATTN_API const char .attn_version", "ATTN_API int attn_more(void);\n\\g<0>")
    edit("runtime/error.c", r"\Z", "int attn_more(void) { return 0; }\n")
    edit("test/tools/interface.txt", r"\A", "attn-call --more\n")
    commit("1.4.1", "More.")
    check("1.4.1", "patch version, from 1.4.0 to 1.4.1", passes=True)
    git("tag", "v1.4.1")
    commit("1.4.0", "Earlier.")
    check("1.4.0", "expected no tag v1.4.0, or one of this commit")

    # attn_dim has no `size` field, so it may not grow.
    edit("runtime/attn.h", "^} attn_dim;", "  int64_t more;\n} attn_dim;")
    commit("1.4.2", "A field of attn_dim.")
    check("1.4.2", "data member insertion:", "'int64_t more'",
          "expected libattn.so.1 to run what was compiled with 1.4.1; abidiff says above what changed")
    commit("1.5.0", "A field of attn_dim.")
    check("1.5.0", "expected libattn.so.1 to run what was compiled with 1.4.1")
    edit("runtime/CMakeLists.txt", "SOVERSION .*", "SOVERSION 2")
    commit("1.5.0", "A field of attn_dim.")
    check("1.5.0", "expected the section 1.5.0 of CHANGELOG.md to name 'libattn.so.2', because")
    commit("1.5.0", "A field of attn_dim: compile programs again, for libattn.so.2.")
    check("1.5.0", "libattn.so.1: not kept, as CHANGELOG.md says", passes=True)
    git("tag", "v1.5.0")

    # The next version removes a function, an option and a field of the report, and changes ATTN_ABI_VERSION.
    edit("runtime/attn.h", "^ATTN_API void attn_pool_release", "ATTN_API void attn_pool_free")
    edit("runtime/pool.c", "^void attn_pool_release", "void attn_pool_free")
    edit("runtime/attn_kernel.h", "ATTN_ABI_VERSION .*", "ATTN_ABI_VERSION 99")
    edit("test/tools/interface.txt", "^attnc --lint\n", "")
    edit("test/tools/interface.txt", "^report unfused\n", "")
    commit("1.5.1", "Less.")
    check("1.5.1", "expected a patch version to keep ATTN_ABI_VERSION",
          "1 Removed function", "attn_pool_release@@ATTN_0",
          "expected a patch version to keep what test/runtime/PoolTest.cpp of 1.5.0 uses",
          "expected a patch version to keep 'attnc --lint'", "expected kReportVersion to rise")
    edit("runtime/CMakeLists.txt", "SOVERSION .*", "SOVERSION 3")
    edit("driver/Compile.h", "kReportVersion = .*;", "kReportVersion = 9;")
    commit("1.6.0", "ABI version 99, libattn.so.3, version 9 of the report without unfused.")
    check("1.6.0", "to name 'attn.h', because this version does not keep what test/runtime/PoolTest.cpp of 1.5.0 uses",
          "to name '--lint', because")
    commit("1.6.0", "ABI version 99, libattn.so.3, attn.h without attn_pool_release, attnc without --lint, "
           "version 9 of the report without unfused.")
    check("1.6.0", "ATTN_ABI_VERSION: not kept, as CHANGELOG.md says", passes=True)


git("init", "-q")
commit("1.4.0", "News.")
cases()
