#!/usr/bin/env python3
"""Writes engine/text/unicode_table.inc: where letters (L*) and numbers (N*) begin and end, from Python's Unicode data.

    scripts/make_unicode_table.py > engine/text/unicode_table.inc

Each entry is first << 2 | class and holds until the next entry's first: 0 neither, 1 letter, 2 number.
"""

import sys
import unicodedata

CLASSES = {"L": 1, "N": 2}


def main() -> None:
    entries = []
    last = 0
    for code in range(sys.maxunicode + 1):
        kind = CLASSES.get(unicodedata.category(chr(code))[0], 0)
        if kind != last or code == 0:
            entries.append(code << 2 | kind)
            last = kind
    print(f"// Unicode {unicodedata.unidata_version}. Made by scripts/make_unicode_table.py.")
    for i in range(0, len(entries), 12):
        print(" ".join(f"0x{entry:x}," for entry in entries[i : i + 12]))


if __name__ == "__main__":
    main()
