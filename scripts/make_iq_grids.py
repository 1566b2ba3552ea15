"""Writes engine/formats/grid_points.inc: the points of GGML's IQ types, from the gguf package that states them.

Needs: pip install gguf numpy. Usage: make_iq_grids.py OUT_FILE
"""
import pathlib
import sys

import gguf
import numpy as np

# table: its type, and the bits of each number of an entry
GRIDS = {
    "kIq2Xxs": ("IQ2_XXS", 2), "kIq2Xs": ("IQ2_XS", 2), "kIq2S": ("IQ2_S", 2),
    "kIq3Xxs": ("IQ3_XXS", 3), "kIq3S": ("IQ3_S", 3), "kIq1": ("IQ1_S", 2),
}
PER_LINE = 14

lines = [
    "// Points of GGML's IQ types: an entry is a point of 8 weights (IQ3: 4), each a number of 2 (IQ3: 3) bits, the "
    "first",
    "// lowest. Made by scripts/make_iq_grids.py.",
]
for table, (name, bits) in GRIDS.items():
    kind = getattr(gguf.quants, name)
    kind.init_grid()
    levels = list(kind.grid_map)
    points = kind.grid.reshape(kind.grid_shape)
    entries = [sum(levels.index(int(x)) << bits * i for i, x in enumerate(point)) for point in points]
    lines.append(f"inline constexpr std::array<std::uint16_t, {len(entries)}> {table}{{")
    for at in range(0, len(entries), PER_LINE):
        lines.append("    " + ", ".join(f"0x{e:04x}" for e in entries[at:at + PER_LINE]) + ",")
    lines.append("};")
pathlib.Path(sys.argv[1]).write_text("\n".join(lines) + "\n")
