#!/usr/bin/env python3
"""Writes the vectors beside it, with the independent implementations `tokenizers` (Hugging Face) and `sentencepiece`:

    pretokenizers.json   byte offsets at which each pre-tokenizer's regular expression cuts each text
    stories.json         ids of each text for models/stories/tokenizer.json, with and without special tokens in it
    sentencepiece.json   a small SentencePiece BPE vocabulary trained here, and ids of each text
    normal_forms.json    texts through normalizers
    tokenizers.json      small tokenizers of several kinds, trained here, and ids of each text
    added.json           the same tokenizers with added tokens of all attributes, and ids of texts with them
    precompiled.json     tokenizers with a character map that SentencePiece makes of the rules below, and ids of each text
    utf8.json            bytes in hexadecimal and their text, what is not UTF-8 replaced by Python's decoder

Python packages: tokenizers, sentencepiece. Run in this folder.
"""

import base64
import io
import json
import random
import re
import unicodedata

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

PROSE = """\
Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or twice
she had peeped into the book her sister was reading, but it had no pictures or conversations in it, "and what is the
use of a book," thought Alice, "without pictures or conversations?" So she was considering in her own mind (as well as
she could, for the hot day made her feel very sleepy and stupid), whether the pleasure of making a daisy-chain would be
worth the trouble of getting up and picking the daisies, when suddenly a White Rabbit with pink eyes ran close by her.
There was nothing so very remarkable in that; nor did Alice think it so very much out of the way to hear the Rabbit say
to itself, "Oh dear! Oh dear! I shall be too late!" It was 7 o'clock, or 19:00, on the 23rd of May 1865.
"""

TEXTS = [
    "", " ", "  ", "   ", "    ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", " \n \n  ", "\t \t", "a", " a", "a ",
    "  a", "a  ", "a  b", "a   b", "a\nb", "a \n b", "a\n\n\nb", "a \n\n  b", "   \n   a", "\n\n    a", "a\r\n\r\nb",
    "a \t b", "Hello, world!", "  Hello,  world!  ", "it's I'm you're we've he'll she'd don't", "IT'S I'M YOU'RE",
    "'s't'm'd're've'll", "''s 'x' 'll' 'LL 'Re", "I'\u017fa '\u017f", "rock 'n' roll's", "' s ' t", "a'", "'", "''",
    "1", "12", "123", "1234", "12345", "1234567890", " 1 12 123 1234", "3.14159", "a1b22c333", "1a", "x 1", "x  1",
    "½ ⅔ ٣٤٥ Ⅻ ² ①", " ½", "१२३४५", "x²y³", "snake_case_name camelCase", "a+b=c", "!!!", " !!! ", "!!!\n\n!!!", "?!\r\n a",
    "...", "(a)[b]{c}<d>", "http://example.com/a?b=c&d=%20", "e-mail: a.b@c.org", "\u00a0", "a\u00a0b", " \u00a0 a",
    "\u00a0\u00a0a", "a\u2003b\u2028c\u2029d", "\u3000全角\u3000スペース", "a\u200bb", " \u200b b", "a\u0085b\u180ec",
    "\x1c\x1d a", "\x00", "a\x00b", "\x7f\x80", "é", "e\u0301", "cafe\u0301 café", "\u0301", " \u0301a", "a\u0301\u0302\u0303",
    "नमस्ते दुनिया", "កាន់តែពិសេសអាចខលចេញ", "ภาษาไทย", "Cửa Việt", "нещо на Български", "Ελληνικά", "עברית", "العربية",
    "你好", "你好，世界！", "我想在apple工作1314151天～", "日本語のテキスト、カタカナ。", "한국어 텍스트", "😀", "😀😀", " 😀",
    "👨\u200d👩\u200d👧", "🚀 (normal) 😶\u200d🌫️ (multiple)", "🇬🇧🇫🇷", "👍🏽", "\U0001F9FF\U0010FFFF", "\ufeffBOM", "\ufffd\ufffe",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛", "ǅ ʰ ª", "ß ẞ ﬀ İ ı", "\U0001E4D0\U00011F02\u1C89", "if (x == 1) {\n    return\ty;\n}\n",
    "def f(x):\n    return x  # why?\n\n\nprint(f(1))\n", "<html>\n  <body>&nbsp;</body>\n</html>", "a" * 100, " " * 33,
    "\n" * 17, "=" * 80, "ab" * 60, "1" * 50, "\u2581", "a\u2581b", "\u2581\u2581a \u2581", "<0x41><s></s><unk>",
    "<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> ", "<|endoftext|><|endoftext|>", "<|endoftext|", "<|<|endoftext|>|>",
    PROSE, PROSE.replace("\n", "\r\n"), PROSE.upper(),
]  # fmt: skip

# Only for pre-tokenizers: scripts and marks that some of their expressions name.
SCRIPTS = [
    "汉字ABC汉字 def漢", "  你好", "你好  你好", "!⺀⺁a", "⺀ 々〇〡中", "x 中x\u0301中\u0301", "中's 中'LL 3中12345", "\U00020000a\U0002A700",
    "아버지가 방에 ㄱㄴ ㅏ", "가나다, 한국어123", "ㄅㄆㄇ ㄅa", "！？：；，。、〈〉", "“q” ‘r’—…", "︰﹏ﾊﾟ", "a b c  d e", "der Hund  läuft, weil\ter muss",
    "एक दो  तीन", "क\u094dषि त\u094dर 1", "a\u0301 b\u0302 \u0301c", "İstanbul'da Ankara'nın", "don't DON'T d'accord", "well, (no)|yes|",
    "سلام، دنیا۔", "।हिन्दी।", "1234 12 1, 1.234.567", "a/b//c\r\n/d", "!!\n\n??\n/", "x\n\ny \n z\n", "\n \n\t\n", "if (a) {\r\n\tb;\r\n}",
    "日本語テキストと漢字", "ｶﾞｷﾞ ＡＢＣ１２３", "mixed中文and한글andかな", " 中", "\u3000中\u3000", "中\n\n中 \n", "😀中😀", "A中b C中d", "3.14中2.72",
]  # fmt: skip

ALPHABET = list("aZ é'sS19½  \n\r\t\u00a0\u3000.,!-_<|>你か😀\u0301\u200d\u017f\u2581lLvedtTmM٣") + ["ing", "the ", "'ll", "  "]


def patterns() -> dict[str, list[str]]:
    """The rows of kPretokenizers, read from the header."""
    with open("../../../include/qsf/text/tokenizer_patterns.h", encoding="utf-8") as file:
        header = file.read()
    constants = dict(re.findall(r'string_view (k\w+) =\s+R"\((.*?)\)";', header))
    rows = re.findall(r'Pretokenizer\{\s*\d+,\s*"([^"]+)",\s*\{([^}]*)\}', header)
    return {name: [constants[each] for each in re.findall(r"pattern::(k\w+)", steps)] for name, steps in rows}


def texts() -> list[str]:
    pick = random.Random(1)
    return TEXTS + ["".join(pick.choices(ALPHABET, k=pick.randint(1, 24))) for _ in range(400)]


def write(name: str, what: object) -> None:
    with open(name, "w", encoding="utf-8") as file:
        text = json.dumps(what, ensure_ascii=True, separators=(",", ":"))
        file.write(re.sub(r'(?<=[\]}]),(?=[\[{]["{])', ",\n", text) + "\n")


def pretokenizers() -> None:
    all_texts = texts() + SCRIPTS
    cuts = {}
    for name, steps in patterns().items():
        splits = [pre_tokenizers.Split(Regex(step), "isolated") for step in steps]
        cutter = pre_tokenizers.Sequence(splits)
        cuts[name] = []
        for text in all_texts:
            ends = [end for _, (_, end) in cutter.pre_tokenize_str(text)]
            cuts[name].append([len(text[:end].encode()) for end in ends])
    write("pretokenizers.json", {"steps": patterns(), "cuts": cuts, "texts": [[text] for text in all_texts]})


def stories() -> None:
    tokenizer = Tokenizer.from_file("../../../models/stories/tokenizer.json")
    special = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts()]
    # Without special tokens: the model alone, behind the pre-tokenizer.
    plain = json.loads(tokenizer.to_str())
    plain["added_tokens"] = []
    bare = Tokenizer.from_str(json.dumps(plain))
    ordinary = [bare.encode(text, add_special_tokens=False).ids for text in texts()]
    write("stories.json", [[text, a, b] for text, a, b in zip(texts(), special, ordinary, strict=True)])


def sentencepiece_vectors() -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PROSE.splitlines() * 2 + ["def f(x):    return  x", "日本語 テキスト", "naïve café"]),
        model_writer=model, model_type="bpe", vocab_size=460, byte_fallback=True, character_coverage=1.0,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
        allow_whitespace_only_pieces=True, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    tokens = []
    for i in range(processor.get_piece_size()):
        kinds = [(processor.is_unknown, 2), (processor.is_control, 3), (processor.is_unused, 5), (processor.is_byte, 6)]
        kind = next((number for test, number in kinds if test(i)), 1)
        tokens.append([processor.id_to_piece(i), processor.get_score(i), kind])
    vectors = [[text, processor.encode(text)] for text in texts()]
    write("sentencepiece.json", {"tokens": tokens, "vectors": vectors})


def utf8() -> None:
    pick = random.Random(2)
    whole = [bytes([b]) for b in b"aZ\x00"] + [c.encode() for c in ["é", "\u0800", "你", "\ufffd", "😀", "\U0010ffff"]]
    odd = [bytes([b]) for b in (0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF)]
    odd += [bytes([b]) for b in (0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFC, 0xFE, 0xFF)] + [c[:-1] for c in whole[3:]]
    strings = [b"".join(pick.choices(whole + odd * 2, k=pick.randint(1, 12))) for _ in range(500)]
    write("utf8.json", [[each.hex(), each.decode("utf-8", errors="replace")] for each in strings])


NORMALIZERS = {
    "nfc": [normalizers.NFC()],
    "nfd": [normalizers.NFD()],
    "nfkc": [normalizers.NFKC()],
    "nfkd": [normalizers.NFKD()],
    "lowercase": [normalizers.Lowercase()],
    "strip": [normalizers.NFD(), normalizers.StripAccents()],
    "texts": [normalizers.Prepend("x "), normalizers.Replace("ab", "b"), normalizers.Replace(" ", "\u2581")],
    "bert": [normalizers.BertNormalizer()],
    "bert-cased": [normalizers.BertNormalizer(lowercase=False, handle_chinese_chars=False)],
}
UNUSUAL = ["\ufb01\ufb03 \u2460\u00bd \u3392 \ufdfa", "\u1100\u1161\u11a8\u1112\u1161", "각한 글 \uac00\u11a8", "aababb ab",
           "a\u0323\u0307 a\u0307\u0323 \u1e69 s\u0307\u0323", "\u0958\u2126\u212b\u0344", "\u09c7\u09be\u0bc6\u0bbe",
           "İIıŞ ΣΑΣ", "\u0301\u0301 \u00a8\u0301", "q\u0307\u0323\u0307", "\U0001d15e\U0001d400\U00011099\U000110ba",
           "½ 和平 \u3099か\u3099", "caf\u00e9 nai\u0308ve", "\ufffd\x00a\u200db", "ﬀ ǅ Ⓐ ª"]  # fmt: skip


def with_vectors(tokenizer: Tokenizer) -> dict:
    vectors = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in texts() + UNUSUAL]
    return {"tokenizer": json.loads(tokenizer.to_str()), "vectors": vectors}


def normal_forms() -> None:
    rows = {name: normalizers.Sequence(steps) for name, steps in NORMALIZERS.items()}
    write("normal_forms.json", [[name, text, each.normalize_str(text)]
                                for name, each in rows.items() for text in TEXTS + UNUSUAL])  # fmt: skip


def tokenizers_of_each_kind() -> None:
    lines = PROSE.splitlines() + ["naïve café", "日本語 テキスト"]
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    pieces.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.train_from_iterator(lines, trainers.UnigramTrainer(vocab_size=240, unk_token="<unk>", special_tokens=["<unk>"]))
    composed = Tokenizer(models.BPE())
    composed.normalizer = normalizers.NFC()
    composed.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    composed.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet))
    with open("sentencepiece.json", encoding="utf-8") as file:
        tokens = json.load(file)["tokens"]
    scores = {text: (-score, i) for i, (text, score, _) in enumerate(tokens)}
    splits = [(scores[text], text[:i], text[i:]) for text in scores for i in range(1, len(text))]
    merges = [(left, right) for _, left, right in sorted(splits) if left in scores and right in scores]
    vocab = {text: i for i, (text, _, _) in enumerate(tokens)}
    falls_back = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    falls_back.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    write("tokenizers.json", {"wordpiece": with_vectors(pieces), "unigram": with_vectors(unigram),
                              "nfc": with_vectors(composed), "byte-fallback": with_vectors(falls_back)})  # fmt: skip


# Added tokens: text, whether it is special, attributes. Tokens of one character are the hardest to keep apart.
ADDED = [("<|user|>", True, "rstrip"), ("<|end|>", True, "rstrip"), ("<s>", True, ""), ("<mask>", True, "lstrip"),
         ("<both>", True, "lstrip rstrip"), ("word", False, "single_word"), ("<w>", True, "single_word rstrip"),
         ("foo", False, "normalized"), ("  ", False, "normalized"), ("\n", False, ""), ("bar", False, "normalized lstrip"),
         ("foobar", False, "normalized single_word"), ("\u00e9", False, "normalized"), ("zz", False, "")]  # fmt: skip
BETWEEN = ["<|user|>", "<|end|>", "<s>", "<mask>", "<both>", "word", "<w>", "foo", "bar", "foobar", " ", "  ", "   ", "\n", "\t",
           "\u00a0", "\u3000", "\u2028", "\r\n", "sword", "words", "FOO", "Foo", "Bar", "f", "Fo\u0301o", "caf\u00e9", "e\u0301",
           "\u00c9", "the king", "The Queen", ".", "_", "-", "\u00fc", "zzz", "a<s>", "x", "<mas", "\uff46oo"]  # fmt: skip


def added_tokens() -> None:
    with open("tokenizers.json", encoding="utf-8") as file:
        bases = json.load(file)
    result = {}
    pick = random.Random(4)
    for name, base in bases.items():
        tokenizer = Tokenizer.from_str(json.dumps(base["tokenizer"]))
        for text, special, attributes in ADDED:
            # The library searches for the normal form of such a token, as a converter does not: see format-tokenizer.md.
            is_normal = tokenizer.normalizer.normalize_str(text) == text
            wanted = [each for each in attributes.split() if each != "normalized" or is_normal]
            if text == "\u00e9" and not is_normal:
                continue
            token = AddedToken(text, **{each: each in wanted for each in ("lstrip", "rstrip", "single_word", "normalized")})
            (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
        made = ["<|user|>\n Hi there<|end|>\n<|assistant|>\n"]
        made += ["".join(pick.choices(BETWEEN, k=pick.randint(1, 9))) for _ in range(400)]
        vectors = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in made]
        result[name] = {"added_tokens": json.loads(tokenizer.to_str())["added_tokens"], "vectors": vectors}
    write("added.json", result)


# Characters whose compatibility form is a rule, and pairs that compose. The texts below are made of both.
FOLDED = "ﬁﬃﬆＡＺａ９！￥½①㍿㌀ｶﾞﾟ豈﨩ﷺﻻſÅΩ™ℹ‼㊗Ⅻ²…ªﬡ\u0958\u09dc\u00a8\u0344\u1e9b\u017f"
PAIRS = ["e\u0301", "a\u0323", "a\u0302", "o\u0323\u0302", "u\u0308", "s\u0307", "\u03c9\u0301", "\u0438\u0306", "\u05d0\u05b7",
         "\u0627\u0653", "\u1100\u1161", "\u1112\u1161\u11ab", "か\u3099", "は\u309a", "ｶﾞ", "ﾊﾟ", "\u0928\u093c", "\u09c7\u09be"]
RULES = {c: unicodedata.normalize("NFKC", c) for c in FOLDED} | {c: unicodedata.normalize("NFC", c) for c in PAIRS[:14]}
RULES |= {"ｶﾞ": "ガ", "ﾊﾟ": "パ", "\u0928\u093c": "\u0929", "\u09c7\u09be": "\u09cb", "\u0301": "'", "\u0600": "#", "\u094d": "-"}
RULES |= {c: " " for c in "\t\n\r\u00a0\u3000\u2028\ufeff"} | {c: "" for c in "\x01\x7f\u200b\u200e\u00ad\ufe0f"}
CLUSTERS = [
    "e\u0301", "e\u0301\u0302", "xe\u0301", "e\u0301\u0302\u0323", "o\u0323\u0302", "o\u0302\u0323", "\u1ed9 \u00f4\u0323",
    "ﬁ\u0301", "ﬁ\u0301\u0301", "½\u0301\u20dd", "ſ\u0307", "ſ\u0323\u0307", "Å\u0323", "Ａ\u0301", "Ａ\u20dd", "™\ufe0f", "ℹ\u0301",
    "\r\n", "a\r\nb", "\n\u0301", "\t\u0301", "\x01\u0301", "\u200b\u0301x", "\u00ad\u0301", "\u200d\u0301", "x\u200d", "½\u200d",
    "\u0600e\u0301", "\u0600ſ", "\u0600\u0601", "\u0600\t", "\u0d4eſ", "\u06dd1\u0301", "ſ\u0e33", "ſ\u0903", "ſ\u102b", "ſ\uff9e", "ｶ\u0301",
    "ｶﾞ ﾊﾟ ﾞ", "か\u3099\u3099", "\u1100\u1161\u11ab", "\u1112\u1161\u11ab\u0301", "각\u0301", "\u1100각\u0301", "\u0958\u0301", "क\u094d\u0958",
    "\u0928\u093c\u0301", "\u09dc\u09be", "\u09c7\u09be", "👩\u200d🚀 👍🏽 ❤\ufe0f 1\ufe0f\u20e3", "🇬🇧🇫🇷\u0301", "e\U0001F3FB", "ſ\U0001F3FB",
    "ſ\U000E0020", "ſ\U000E0100", "\ue000\u0301", "\U000F0000\u0301", "\U000E0001\u0301", "\u2028\u0301", "  ＡＺ  ｶ ", "a  b   c", "a  ", " a",
    " \u3000 a\u3000", "\u200b ", " \u200b", "", " ", "a \u200b b", "a\u00a0 \tb", "``q''", "É\u0301 ﷺ",
]  # fmt: skip
VOCABULARY = ["▁", "a", "b", "e", "é", "s", "x", "'", "#", "fi", "▁a", "▁the", "th", "he", "in", "ガ", "▁1", "⁄2", "株式会社", "\u00e9\u0302", "TM"]


def character_map() -> str:
    def codes(text: str) -> str:
        return " ".join(f"{ord(c):X}" for c in text)

    with open("/tmp/rules.tsv", "w", encoding="utf-8") as file:
        file.writelines(f"{codes(key)}\t{codes(text)}\n" for key, text in RULES.items() if key != text)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PROSE.splitlines()), model_writer=model, vocab_size=60, hard_vocab_limit=False,
        normalization_rule_tsv="/tmp/rules.tsv", minloglevel=2,
    )  # fmt: skip
    rest = model.getvalue()
    while rest:  # the fields of ModelProto; number 3 is NormalizerSpec, whose field 2 is the map
        number, content, rest = field(rest)
        while number == 3 and content:
            inner, text, content = field(content)
            if inner == 2:
                return base64.b64encode(text).decode()
    raise ValueError("the model has no map")


def field(data: bytes) -> tuple[int, bytes, bytes]:
    """Returns the number and content of a protobuf message's first field, and the rest."""

    def varint(data: bytes) -> tuple[int, bytes]:
        n = next(i for i, byte in enumerate(data) if byte < 128) + 1
        return sum((byte & 127) << 7 * i for i, byte in enumerate(data[:n])), data[n:]

    key, data = varint(data)
    if key & 7 == 2:
        size, data = varint(data)
    elif key & 7 == 0:
        return key >> 3, b"", varint(data)[1]
    else:
        size = {5: 4, 1: 8}[key & 7]
    return key >> 3, data[:size], data[size:]


def precompiled() -> None:
    charsmap = {"type": "Precompiled", "precompiled_charsmap": character_map()}
    one, mark = [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": content} for content in (" ", "▁")]
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    quotes = [{"type": "Replace", "pattern": {"String": text}, "content": '"'} for text in ("``", "''")]
    plain = [{"type": each} for each in ("NFKD", "StripAccents", "Lowercase")]
    words = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    split = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, words]}
    kinds = {
        "words": (charsmap, split),
        "joined": ({"type": "Sequence", "normalizers": [charsmap, one]}, words),
        "stripped": ({"type": "Sequence", "normalizers": [charsmap, strip, mark]}, words),
        "lower": ({"type": "Sequence", "normalizers": [*quotes, *plain, charsmap, one]}, words),
    }
    pieces = [["<unk>", 0.0], *([text, -2.0 - i / 8] for i, text in enumerate(VOCABULARY))]
    pieces += [[f"<0x{byte:02X}>", -9.0] for byte in range(256)]
    pick = random.Random(3)
    letters = list(FOLDED) + PAIRS * 2 + list("\u0301\u0302\u0323\u20dd\u200d\u0600\u200b\t\r\n") * 3 + list("ae s1x  中🚀👩각") * 3
    made = CLUSTERS + UNUSUAL + ["".join(pick.choices(letters, k=pick.randint(1, 12))) for _ in range(500)]
    result = {}
    for name, (normalizer, pre_tokenizer) in kinds.items():
        parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
                 "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None,
                 "model": {"type": "Unigram", "unk_id": 0, "vocab": pieces, "byte_fallback": True}}  # fmt: skip
        tokenizer = Tokenizer.from_str(json.dumps(parts))
        of_kind = made if name == "words" else made[: len(CLUSTERS) + 60]
        vectors = [[text, tokenizer.encode(text, add_special_tokens=False).ids] for text in of_kind]
        # The map is stored once.
        without = json.loads(json.dumps(normalizer).replace(charsmap["precompiled_charsmap"], ""))
        result[name] = {"normalizer": without, "pre_tokenizer": pre_tokenizer, "vectors": vectors}
    write("precompiled.json", {"map": charsmap["precompiled_charsmap"], "vocab": pieces, "kinds": result})


if __name__ == "__main__":
    utf8()
    pretokenizers()
    stories()
    sentencepiece_vectors()
    normal_forms()
    tokenizers_of_each_kind()
    added_tokens()
    precompiled()
