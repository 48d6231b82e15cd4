"""A committed file with a line for each case, `name result`, with which a test compares what it found."""
import pathlib


def compare(file, found, is_covered=lambda name: True, write=False):
    """Prints each case of `found`, which has a result for each name, and each covered case of the file, whose results
    differ, and returns their number. A better result is a difference too. With `write`, the covered lines of the file
    become those of `found`, and there is no difference. The lines of other cases stay as they are."""
    path = pathlib.Path(file)
    lines = path.read_text().splitlines() if path.exists() or not write else []
    comments = [line for line in lines if line.startswith("#")]
    table = dict(line.split(" ", 1) for line in lines if not line.startswith("#"))
    if write:
        table = {name: result for name, result in table.items() if not is_covered(name)} | found
        path.write_text("".join(f"{line}\n" for line in comments + [f"{name} {table[name]}" for name in sorted(table)]))
        return 0
    names = sorted(name for name in found.keys() | table.keys() if is_covered(name) and found.get(name) != table.get(name))
    for name in names:
        print(f"{name}: got '{found.get(name, 'no result')}', {path.name} has '{table.get(name, 'no line')}'")
    return len(names)
