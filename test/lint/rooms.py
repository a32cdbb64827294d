#!/usr/bin/python3
"""Keeps the rooms of src/ apart: includes go one way, core knows no server, and one file includes the server's headers.

    core <- base <- table <- claim <- ring <- worker <- functions <- idem.cpp

A file may include its own room and those to its left; within a room no circle of includes. A .hpp and its .cpp count as
one module. Prints each fault and exits 1. Before it looks at src/, it proves on planted faults that it sees each kind.
"""

import re
import sys
from pathlib import Path

ROOMS = ["core", "server/base", "server/table", "server/claim", "server/ring", "server/worker", "functions", ""]
THE_SERVER = "server/base/postgres.hpp"
LIBRARIES = {"sodium.h"}


def folder_of(file):
    return file.rpartition("/")[0]


def room_of(file):
    return ROOMS.index(folder_of(file))


def includes_of(text):
    """(name, quoted) of each include."""
    return [(name, mark == '"') for mark, name in re.findall(r'^\s*#\s*include\s*(["<])([^">]+)[">]', text, re.M)]


def module_of(file):
    return file.rsplit(".", 1)[0]


def circles(graph):
    """Each circle once, as the modules that form it."""
    found, done = [], set()

    def visit(module, path):
        if module in path:
            found.append(path[path.index(module):] + [module])
            return
        if module in done:
            return
        for other in sorted(graph.get(module, ())):
            visit(other, path + [module])
        done.add(module)

    for module in sorted(graph):
        visit(module, [])
    return found


def faults_of(files):
    """What is wrong with files, a dict of names below src/ and their texts."""
    faults, graph = [], {}
    for file, text in sorted(files.items()):
        if folder_of(file) not in ROOMS:
            faults.append(f"{file}: no room of that name")
            continue
        for name, quoted in includes_of(text):
            if name not in files:
                standard = not quoted and (not name.endswith(".h") or name in LIBRARIES)
                if not standard and file != THE_SERVER:
                    faults.append(f"{file}: includes {name}; only {THE_SERVER} includes the server's headers")
                continue
            if room_of(name) > room_of(file):
                faults.append(f"{file}: includes {name}, which runs up")
            if module_of(name) != module_of(file):
                graph.setdefault(module_of(file), set()).add(module_of(name))
    return faults + ["circle: " + " -> ".join(circle) for circle in circles(graph)]


def prove_that_faults_are_seen():
    ok = {"core/a.hpp": "#include <cstdint>\n#include <sodium.h>\n", THE_SERVER: '#include "postgres.h"\n',
          "server/table/t.hpp": f'#include "core/a.hpp"\n#include "{THE_SERVER}"\n',
          "server/claim/c.cpp": '#include "server/table/t.hpp"\n', "functions/f.cpp": '#include "server/claim/c.hpp"\n',
          "server/claim/c.hpp": "", "idem.cpp": '#include "server/table/t.hpp"\n'}
    assert faults_of(ok) == [], faults_of(ok)
    planted = {
        "runs up": {"server/table/t.cpp": '#include "server/claim/c.hpp"\n'},
        "core": {"core/b.cpp": f'#include "{THE_SERVER}"\n'},
        "server's headers": {"server/claim/d.cpp": '#include "access/xact.h"\n'},
        "in brackets": {"core/b.cpp": "#include <postgres.h>\n"},
        "circle": {"server/table/t.cpp": '#include "server/table/u.hpp"\n',
                   "server/table/u.cpp": '#include "server/table/t.hpp"\n', "server/table/u.hpp": ""},
        "no room": {"server/utils.hpp": ""},
    }
    for kind, files in planted.items():
        assert faults_of(ok | files), f"a planted fault is not seen: {kind}"


def main():
    prove_that_faults_are_seen()
    src = Path(__file__).resolve().parents[2] / "src"
    files = {str(path.relative_to(src)): path.read_text() for path in src.rglob("*.[ch]pp")}
    faults = faults_of(files)
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main())
