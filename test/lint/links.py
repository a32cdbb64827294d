#!/usr/bin/python3
"""Follows the links of installed pages to other files: links.py FOLDER, where make install has put README.md.

Prints each that leads to nothing and exits 1. The benchmarks' own page is left out: what it links to are programs, which
are not installed.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def broken_links(folder):
    pages = [page for page in sorted(folder.rglob("*.md")) if page.parent.name != "bench"]
    if folder / "README.md" not in pages or len(pages) < 3:
        yield f"{folder}: no pages"
    for page in pages:
        for target in LINK.findall(page.read_text()):
            if not (page.parent / target).exists():
                yield f"{page.relative_to(folder)}: {target} is not there"


faults = list(broken_links(Path(sys.argv[1])))
print(*faults, sep="\n", end="\n" if faults else "")
sys.exit(bool(faults))
