"""reasons.py: checks that what users of .pt2 files read is about their model, not about MLIR.

Errors of frontend/pt2, and the findings of the report (emitFinding), may name no op, type or map of MLIR: neither in
their text nor through a value that prints one, such as getName() of an op or a map. EXCEPTIONS has the statements that
do, each with its reason; an exception that no source has is a failure too.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STARTS = re.compile(r"\b(?:emitFinding|leftUnfused|emitError)\s*\(|\binvalid\((?!const)|\berror\(\)\s*<<|\b(?:remark|finding)\s*<<")
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
WORDS = re.compile(r"affine_map|\b(?:affine|arith|attn|linalg|memref|scf|tensor|vector)\.\w")
VALUES = re.compile(r"\b(?:getName\(\)|getMatchingIndexingMap\(|getIndexingMap\(|map\b(?!_)|getType\(\))")
EXCEPTIONS = {}  # {(file, text in the statement): reason}


def statements(text):
    """Yields each statement that reports something, and its line."""
    for match in STARTS.finditer(text):
        if text.rfind("\n", 0, match.start()) < text.rfind("//", 0, match.start()):
            continue
        end, depth, quoted = match.start(), 0, False
        while end < len(text) and (quoted or depth > 0 or text[end] != ";"):
            c = text[end]
            if c == '"' and text[end - 1] != "\\":
                quoted = not quoted
            elif not quoted:
                depth += (c in "({[") - (c in ")}]")
            if depth < 0:
                break
            end += 1
        yield text[match.start():end], text.count("\n", 0, match.start()) + 1


def complaints():
    files = [*(ROOT / "frontend/pt2").rglob("*.cpp"), *(ROOT / "passes").rglob("*.cpp"), *(ROOT / "codegen").rglob("*.cpp")]
    used = set()
    for path in sorted(files):
        name = path.relative_to(ROOT).as_posix()
        for statement, line in statements(path.read_text()):
            is_finding = re.match(r"emitFinding|leftUnfused|remark|finding", statement)
            if not is_finding and not name.startswith("frontend/pt2"):
                continue
            texts = " ".join(STRING.findall(statement))
            values = STRING.sub('""', statement)
            found = WORDS.search(texts) or VALUES.search(values)
            if not found:
                continue
            exception = next((key for key in EXCEPTIONS if key[0] == name and key[1] in statement), None)
            if exception:
                used.add(exception)
            else:
                yield f"{name}:{line}: expected a text about the user's model, got '{found.group()}' in: {' '.join(statement.split())}"
    for exception in EXCEPTIONS.keys() - used:
        yield f"expected a statement for the exception {exception}, got none"


found = list(complaints())
print("\n".join(found))
sys.exit(bool(found))
