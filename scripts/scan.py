#!/usr/bin/python3
# scan.py: prints the files below a folder whose names match a pattern, sorted, relative to it, one a line.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

folder, pattern = pathlib.Path(sys.argv[1]), sys.argv[2]
for path in sorted(folder.rglob(pattern)):
    print(path.relative_to(folder).as_posix())
