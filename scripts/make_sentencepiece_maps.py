"""Writes tests/text/data/sentencepiece: unigram and BPE with a small character map, texts, and their tokens
from SentencePiece.

Needs: pip install sentencepiece. Usage: make_sentencepiece_maps.py OUT_FOLDER
"""
import json
import pathlib
import random
import sys

import sentencepiece

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
random.seed(5)

# key: its replacement; the longest key that matches is used
RULES = {
    "\uff21": "A", "\uff22": "B", "e\u0301": "\u00e9", "e\u0301\u0323": "\u1eb9\u0301", "\u3000": " ", "\t": " ",
    "\u200b": "", "\ufb01": "fi", "\u00bd": "1\u20442", "\u337f": "\u682a\u5f0f\u4f1a\u793e", "ss": "\u00df",
    "\u03c2": "\u03c3",
}
WORDS = ("the river is slow and the sun is warm caf\u00e9 \u00e9t\u00e9 stra\u00dfe fish fine 1\u20442 A B AB "
         "\u682a\u5f0f \u03bb\u03cc\u03b3\u03bf\u03c3 engine").split()
codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
(out / "rules.tsv").write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES.items()))
(out / "train.txt").write_text("\n".join(" ".join(random.choices(WORDS, k=6)) for _ in range(400)))

texts = ["", " ", "  the  river ", "cafe\u0301", "e\u0301\u0323 e\u0323\u0301", "\uff21\uff22 \uff23", "a\u200bb\u200b",
         "\ufb01ne \ufb01sh", "\u3000\t\u3000warm", "\u337f\u00bd", "strasse sss s", "\u03bb\u03cc\u03b3\u03bf\u03c2",
         "\u200b", "\u682a\u5f0f\u4f1a \u2603", "\u200b the", "e", "x e\u0301"]
pieces = list(RULES) + WORDS + [" ", "  ", "z", "\u2603", "e", "s", "\u0301"]
texts += ["".join(random.choices(pieces, k=random.randint(1, 9))) for _ in range(60)]

expected = [{"text": text} for text in texts]
for kind, size in ("unigram", 54), ("bpe", 320):
    sentencepiece.SentencePieceTrainer.train(
        input=str(out / "train.txt"), model_prefix=str(out / kind), model_type=kind, vocab_size=size,
        byte_fallback=kind == "bpe", normalization_rule_tsv=str(out / "rules.tsv"), minloglevel=2)
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / f"{kind}.model"))
    for each in expected:
        each[kind] = model.encode(each["text"])
    (out / f"{kind}.vocab").unlink()
(out / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
(out / "train.txt").unlink()
(out / "rules.tsv").unlink()
