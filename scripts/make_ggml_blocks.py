"""Writes tests/data/ggml-blocks: random blocks of GGML's types and the values that the gguf package reads from them.

Needs: pip install gguf numpy. Usage: make_ggml_blocks.py OUT_FOLDER
"""
import pathlib
import sys

import gguf
import numpy as np

BLOCKS = 3
# type: offsets of the fp16 scales and minima in a block; their random bits are replaced by usual numbers
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "TQ1_0": [52], "TQ2_0": [64],
    "IQ4_XS": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0],
    "IQ1_M": [], "MXFP4": [], "NVFP4": [],
}

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
random = np.random.default_rng(7)
for name, halves in HALVES.items():
    kind = gguf.GGMLQuantizationType[name]
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for at in halves:
        blocks[:, at:at + 2] = random.normal(0, 0.1, (BLOCKS, 1)).astype(np.float16).view(np.uint8)
    if name == "IQ1_M":  # the four parts of a scale are the top bits of four words
        scale = random.normal(0, 0.1, (BLOCKS, 1)).astype(np.float16).view(np.uint16)
        words = blocks[:, 48:56].copy().view(np.uint16)
        blocks[:, 48:56] = (words & 0x0fff | scale >> np.uint16([0, 4, 8, 12]) << np.uint16(12)).view(np.uint8)
    if name == "MXFP4":  # the least exponents, and a usual one
        blocks[:, :1] = [[0], [1], [121]]
    values = gguf.quants.dequantize(blocks, kind).astype(np.float32)
    (out / f"{name}.q").write_bytes(blocks.tobytes())
    (out / f"{name}.f32").write_bytes(values.tobytes())
