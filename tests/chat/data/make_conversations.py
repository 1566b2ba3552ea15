"""Writes conversations.json: small tokenizers in the forms of published ones, a chat template for each, and what
transformers makes of conversations with them: the text, and the ids of apply_chat_template(tokenize=True).

Needs transformers (5.12) and tokenizers (0.23). Usage: make_conversations.py > conversations.json
The tokenizers are trained on pages of docs/ and the lines below. Later pages make other merges.
"""
import json
import pathlib
import re
import tempfile

import transformers
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[3]
MOST = 512  # tokens of each, added ones included
SPACE = "\u2581"
LINES = """Grüße aus Köln, mañana y déjà vu. Ça va? Żółta łódź; dvě štěňata. e\u0301 n\u0303 u\u0308 가 각
Москва и река; один, два, три. Ελλάδα και νερό. שלום עולם. नमस्ते दुनिया. สวัสดี
今日は天気がいい。中文字符和日本語のひらがな、カタカナ。中文字符 今日は
def add(a, b):\n\treturn a + b  # not a list\nfor (int i = 0; i < 10; ++i) { x[i] = y[i] * 2; }
It's what they're here for: I'LL go, you've 1234 or 56.78; DON'T, don't. MyLongName and theirName 1234 12345 2026 234 567 890. a/\n//\n/\n).\n {"key": [1, 2, 3]} https://example.org/a?b=c
\U0001F600 \u2615\ufe0f \U0001F469\u200d\U0001F467 ok
"""
UNMERGED = ["\u0120plain", "\u0120spaces", "\u0120lines", "Code"]  # tokens that no merges make
CORPUS = [LINES] * 40 + [
    re.sub(r"[|`*#]+", " ", (ROOT / "docs" / name).read_text())
    for name in ("promises.md", "glossary.md", "internals/text.md")
]


def pattern(name):
    """The regular expression of a row of the project's table of pre-tokenizers."""
    header = (ROOT / "include/qsf/text/tokenizer_patterns.h").read_text()
    return re.search(rf'k{name} =\s*R"\((.*)\)";', header).group(1)


def split(name):
    return {"type": "Split", "pattern": {"Regex": pattern(name)}, "behavior": "Isolated", "invert": False}


def byte_level(regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def begins_with(token, number):
    """A post-processor that adds the begin token. Conversations are encoded without it."""
    special = {"SpecialToken": {"id": token, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [special, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [special, {"Sequence": {"id": "A", "type_id": 0}}, special, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
    }


def added(tokens, number):
    """Entries of added tokens from `number` on. A leading "=" marks one that is no special token."""
    return [
        {"id": number + i, "content": token.removeprefix("="), "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": not token.startswith("=")}
        for i, token in enumerate(tokens)
    ]


def trained(pre_tokenizer, trainer, model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())["model"]


def whole(model, tokens, first, normalizer=None, pre_tokenizer=None, post_processor=None):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(tokens, first),
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor,
            "decoder": None, "model": model}


def of_bytes(steps, tokens, begin=None, normalizer=None, ignore_merges=False):
    """BPE of bytes, whose added tokens follow the vocabulary."""
    size = MOST - len(tokens) - 20
    # Words are cut at spaces only, so that a different pre-tokenizer shows.
    words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(" ?[^ ]+| +"), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    model = trained(words, trainers.BpeTrainer(
        vocab_size=size - ignore_merges * len(UNMERGED), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False), models.BPE())
    if ignore_merges:
        model["ignore_merges"] = True
        model["vocab"] |= {token: len(model["vocab"]) + i for i, token in enumerate(UNMERGED)}
    after = begins_with(begin, size + tokens.index(begin)) if begin else byte_level(False)
    return whole(model, tokens, size, normalizer, steps[0] if len(steps) == 1 else sequence(*steps), after)


def of_characters(tokens, begin=None, normalizer=None, pre_tokenizer=None, every_way=False):
    """BPE of characters with bytes as a fallback. The vocabulary begins with <unk>, <s>, </s> and the bytes."""
    first = ["<unk>", "<s>", "</s>"] + [f"<0x{value:02X}>" for value in range(256)]
    size = MOST - len(tokens) - 10
    words = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(split=False),
                                     pre_tokenizers.Split(Regex(f"{SPACE}+[^{SPACE}]*"), "isolated")])
    model = trained(words, trainers.BpeTrainer(
        vocab_size=size, limit_alphabet=100, special_tokens=first, show_progress=False), models.BPE(unk_token="<unk>"))
    vocab = model["vocab"]
    if every_way:  # as files that are made from SentencePiece's list every pair that joins to a token
        model["merges"] = [
            pair for token, _ in sorted(vocab.items(), key=lambda item: item[1]) if token not in first
            for pair in sorted(([token[:i], token[i:]] for i in range(1, len(token))
                                if token[:i] in vocab and token[i:] in vocab), key=lambda pair: [vocab[p] for p in pair])
        ]
    model |= {"byte_fallback": True, "fuse_unk": True}
    after = begins_with(begin, vocab[begin]) if begin else None
    out = whole(model, tokens, size, normalizer, pre_tokenizer, after)
    out["added_tokens"] = added(first[:3], 0) + out["added_tokens"]
    number = size
    for token in out["added_tokens"]:  # the vocabulary may have it, too
        token["id"] = vocab.get(token["content"], number)
        number += token["id"] == number
    return out


def of_pieces(tokens):
    """Unigram with NFKC, whose control tokens are the first ones."""
    model = trained(pre_tokenizers.Metaspace(), trainers.UnigramTrainer(
        vocab_size=MOST - 20, special_tokens=tokens, unk_token="<unk>", show_progress=False), models.Unigram())
    model["vocab"] = [[piece, round(score, 4)] for piece, score in model["vocab"]]
    return whole(model, tokens, 0, {"type": "Sequence", "normalizers": [
        {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
        {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True})


def replaced(*before):
    return {"type": "Sequence", "normalizers": [
        *before, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]}


CHATML = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
THINKING = """{%- if messages[0].role != 'system' %}{{- '<|im_start|>system\\nBe of help.<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' + message.content.lstrip('\\n') + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n<think>\\n' }}
{%- endif %}"""
HEADERS = """{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\\n\\n' ~ message.content | trim ~ '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
SYSTEM_IN_INST = """{% set ns = namespace(system='') %}
{% for message in messages %}
{% if message['role'] == 'system' %}
{% set ns.system = '<<SYS>>\\n' + message['content'].strip() + '\\n<</SYS>>\\n\\n' %}
{% elif message['role'] == 'user' %}
{{- bos_token + '[INST] ' + ns.system + message['content'].strip() + ' [/INST]' -}}
{% set ns.system = '' %}
{% else %}
{{- ' ' + message['content'].strip() + ' ' + eos_token -}}
{% endif %}
{% endfor %}"""
INST = """{{- 'Conversation:' }}
{%- set said = messages[0].content + '\\n\\n' if messages[0].role == 'system' else '' %}
{%- for message in messages if message.role != 'system' %}
    {%- if message.role == 'user' %}
        {{- '[INST]' + (said if loop.last else '') + message.content + '[/INST]' }}
    {%- else %}
        {{- message.content + eos_token }}
    {%- endif %}
{%- endfor %}"""
SYSTEM_PROMPT = """{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {{- '[SYSTEM_PROMPT]' + message.content + '[/SYSTEM_PROMPT]' }}
    {%- elif message.role == 'user' %}
        {{- '[INST]' + message.content + '[/INST]' }}
    {%- else %}
        {{- message.content + eos_token }}
    {%- endif %}
{%- endfor %}"""
TURNS = """{{ bos_token }}
{%- set first = '' %}
{%- if messages[0]['role'] == 'system' %}
    {%- set first = messages[0]['content'] | trim + '\\n\\n' %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages %}
    {{- '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' }}
    {{- (first if loop.first else '') + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"""
ROLES = """{% for message in messages %}
{% if message['role'] in ['system', 'user', 'assistant'] %}
{{ '<|' + message['role'] + '|>' }}
{{ message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""
WIDE_BARS = """{{- bos_token }}{% set ns = namespace(said='') %}
{%- for message in messages %}{% if message.role == 'system' %}{% set ns.said = ns.said ~ message.content %}{% endif %}{% endfor %}
{{- ns.said }}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<｜User｜>' + message.content }}{%- endif %}
{%- if message.role == 'assistant' %}{{- '<｜Assistant｜>' + message.content + eos_token }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜>' }}{% endif %}"""
CHANNELS = """{{- "<|start|>system<|message|>Reasoning: low\\n\\n# Valid channels: analysis, final.<|end|>" }}
{%- for message in messages %}
    {%- if message.role == "system" %}
        {{- "<|start|>developer<|message|># Instructions\\n\\n" + message.content + "<|end|>" }}
    {%- elif message.role == "assistant" %}
        {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + ("<|return|>" if loop.last else "<|end|>") }}
    {%- else %}
        {{- "<|start|>" + message.role + "<|message|>" + message.content + "<|end|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}"""
ENDS = """{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

MARKS = ["<|im_start|>", "<|im_end|>"]
FORMS = [
    ("gpt2", of_bytes([byte_level(True)], ["<|endoftext|>", *MARKS]), CHATML, None, "<|endoftext|>"),
    ("llama3", of_bytes([split("Llama3"), byte_level(False)], [
        "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        "<|begin_of_text|>", ignore_merges=True), HEADERS, "<|begin_of_text|>", "<|eot_id|>"),
    ("qwen2", of_bytes([split("Qwen2"), byte_level(False)], ["<|endoftext|>", *MARKS, "=<think>", "=</think>"],
                       normalizer={"type": "NFC"}), THINKING, None, "<|im_end|>"),
    ("llama2", of_characters([], "<s>", replaced({"type": "Prepend", "prepend": SPACE}), every_way=True),
     SYSTEM_IN_INST, "<s>", "</s>"),
    ("mistral", of_characters(["[INST]", "[/INST]"], pre_tokenizer={
        "type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}), INST, None, "</s>"),
    ("gemma", of_characters(["<start_of_turn>", "<end_of_turn>", "=<table>", "=\n\n", "=\n\n\n"], "<s>", replaced()["normalizers"][0], {
        "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}),
     TURNS, "<s>", "<end_of_turn>"),
    ("unigram", of_pieces(["<unk>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>"]), ROLES, "<s>", "</s>"),
    ("deepseek", of_bytes([split("NumbersOfThree"), split("HanKana"), split("DeepseekV3"), byte_level(False)], [
        "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "=<｜User｜>", "=<｜Assistant｜>"],
        "<｜begin▁of▁sentence｜>"), WIDE_BARS, "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    ("o200k", of_bytes([split("O200k"), byte_level(False)], [
        "<|startoftext|>", "<|return|>", "<|start|>", "<|channel|>", "<|message|>", "<|end|>"]),
     CHANNELS, "<|startoftext|>", "<|return|>"),
    ("tekken", of_bytes([split("Tekken"), byte_level(False)], [
        "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"], "<s>", ignore_merges=True),
     SYSTEM_PROMPT, "<s>", "</s>"),
    ("phi3", of_characters(["<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"], None,
                           replaced({"type": "Prepend", "prepend": SPACE})), ENDS, None, "<|endoftext|>"),
]

CONVERSATIONS = [
    {"turns": [("system", "You answer in one or two plain sentences."), ("user", "What is 17 * 4096?"),
               ("assistant", "It's 69632, or 69,632."), ("user", "And 1234567890/3.5? DON'T round MyLongName, 12345 or 2026!")],
     "add_generation_prompt": True},
    {"turns": [("user", "  spaces before and after  \n"), ("assistant", "\n\n Two lines\n\nand  more.\n\n\n"),
               ("user", "\u00a0e\u0301a n\u0303 \u1100\u1161\u11a8 \ufb01 \u2460 Å \U0001F469\u200d\U0001F467\u2615\ufe0f\u3000"),
               ("assistant", "中文字符，ひらがなカタカナ。Москва — שלום नमस्ते สวัสดี"), ("user", "ok\U0001F600")],
     "add_generation_prompt": True},
    {"turns": [("system", "\tCode only.\r\n"), ("user", "```python\ndef f(x):\n\treturn x[0] == 'a\\n'  # they're\n```"),
               ("assistant", "for (int i = 0; i < 10; ++i) {\r\n    y[i] /= 2;  //\n/\r\n}\n")],
     "add_generation_prompt": False},
    {"turns": [("user", ""), ("assistant", " "), ("user", SPACE + "a" + SPACE * 2 + "b \\n <b>x</b> <table> \n\n\n 's I'LL")],
     "add_generation_prompt": True},
]


def line(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


conversations = [{"messages": [{"role": role, "content": content} for role, content in each["turns"]],
                  "add_generation_prompt": each["add_generation_prompt"]} for each in CONVERSATIONS]
forms = []
for name, tokenizer, template, begin, end in FORMS:
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "chat_template": template}
    if begin:
        config["bos_token"] = begin
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "tokenizer.json").write_text(line(tokenizer))
        pathlib.Path(folder, "tokenizer_config.json").write_text(line(config))
        hugging = transformers.AutoTokenizer.from_pretrained(folder)
    numbers = {"eos_token_id": hugging.convert_tokens_to_ids(end)}
    if begin:
        numbers["bos_token_id"] = hugging.convert_tokens_to_ids(begin)
    made = [
        {"text": hugging.apply_chat_template(each["messages"], tokenize=False,
                                             add_generation_prompt=each["add_generation_prompt"]),
         "ids": hugging.apply_chat_template(each["messages"], tokenize=True, return_dict=False,
                                            add_generation_prompt=each["add_generation_prompt"])}
        for each in conversations
    ]
    parts = [f'"name":{line(name)}', f'"model":{line(numbers)}', f'"config":{line(config)}',
             f'"tokenizer":{line(tokenizer)}', '"made":[\n' + ",\n".join(map(line, made)) + "\n]"]
    forms.append("{" + ",\n".join(parts) + "}")
print('{"conversations":[\n' + ",\n".join(map(line, conversations)) + '\n],"forms":[\n' + ",\n".join(forms) + "\n]}")
