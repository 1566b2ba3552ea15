"""Writes chat.json: short templates in the form of each family, and what Jinja makes of conversations with them.

Needs: python3-jinja2, set up as transformers' apply_chat_template sets it up. Usage: make_chat.py > chat.json
"""
import datetime
import json

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

DAY = datetime.datetime(2025, 3, 7)
LLAMA31 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- DATE %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set said = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set said = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- said + "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
CHATML = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
DEFAULT = """{% for message in messages %}{% if loop.first and message['role'] != 'system' %}{{ '<|im_start|>system\\nSAID<|im_end|>\\n' }}{% endif %}"""
INST = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.WHICH and system_message is defined %}
            {{- "PRE" + system_message + "\\n\\n" + message["content"] + "POST" }}
        {%- else %}
            {{- "PRE" + message["content"] + "POST" }}
        {%- endif %}
    {%- else %}
        {{- ANSWER + eos_token}}
    {%- endif %}
{%- endfor %}
"""
GRANITE = """{%- if messages[0]['role'] == 'system' %}
    {%- set said = messages[0]['content'] %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set said = SAID %}
    {%- set rest = messages %}
{%- endif %}
{{- '<|start_of_role|>system<|end_of_role|>' + said + '<|end_of_text|>\\n' }}
{%- for message in rest %}
    {{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>\\n' }}
    {%- if loop.last and add_generation_prompt %}
        {{- '<|start_of_role|>assistant<|end_of_role|>' }}
    {%- endif %}
{%- endfor %}
"""


def said(text):
    return DEFAULT.replace("SAID", text) + CHATML.removeprefix("{% for message in messages %}")


def inst(pre, post, which, answer):
    return INST.replace("PRE", pre).replace("POST", post).replace("WHICH", which).replace("ANSWER", answer)


QWEN3 = """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\nTHINK' }}
{%- endif %}
"""
GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""

TEMPLATES = {
    "chatml": CHATML,
    "qwen2": said("You are a helpful assistant."),
    "qwen2.5": said("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
    "smollm2": said("You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
    "qwen3": QWEN3.replace("THINK", ""),
    "qwen3-thinking": QWEN3.replace("THINK", "<think>\\n"),
    "lfm2": "{{- bos_token -}}" + CHATML,
    "llama2": """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% else %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}""",
    "llama3": """{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}""",
    "llama3.1": LLAMA31.replace("DATE", 'set date_string = "26 Jul 2024"'),
    "llama3.2": LLAMA31.replace("DATE", 'set date_string = strftime_now("%d %b %Y") or "26 Jul 2024"'),
    "mistral": """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}""",
    "mistral-v1": inst(" [INST] ", " [/INST]", "first", '" " + message["content"]'),
    "mistral-v3": inst("[INST] ", "[/INST]", "last", '" " + message["content"]|trim'),
    "mistral-v3-tekken": inst("[INST]", "[/INST]", "last", 'message["content"]'),
    "mistral-v7": """{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + '[/INST]' }}{% elif message['role'] == 'system' %}{{ '[SYSTEM_PROMPT] ' + message['content'] + '[/SYSTEM_PROMPT]' }}{% else %}{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}""",
    "phi-3": """{% for message in messages %}{{'<|' + message['role'] + '|>' + '\n' + message['content'] + '<|end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{- '<|assistant|>\n' -}}{% endif %}""",
    "phi-4": """{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}{% else %}{{'<|im_start|>assistant<|im_sep|>' + message['content'] + '<|im_end|>'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}""",
    "phi-4-mini": """{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}""",
    "gemma": GEMMA,
    "gemma3": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {{- message['content'] | trim -}}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\\n' }}
{%- endif -%}
""",
    "granite-3": GRANITE.replace("SAID", """"Knowledge Cutoff Date: April 2024.\\nToday's Date: " + strftime_now('%B %d, %Y') + ".\\nYou are Granite, developed by IBM." + " You are a helpful AI assistant.\""""),
    "granite-4": GRANITE.replace("SAID", "'You are a helpful assistant. Please ensure responses are professional, accurate, and safe.'"),
    "gpt-oss": """{{- "<|start|>system<|message|>" }}
{{- "You are ChatGPT, a large language model trained by OpenAI." }}
{{- "\\nKnowledge cutoff: 2024-06\\n" }}
{{- "Current date: " + strftime_now("%Y-%m-%d") + "\\n\\n" }}
{{- "Reasoning: medium\\n\\n" }}
{{- "# Valid channels: analysis, commentary, final. Channel must be included for every message." }}
{{- "<|end|>" }}
{%- if messages[0].role == "system" %}
    {{- "<|start|>developer<|message|># Instructions\\n\\n" + messages[0].content + "<|end|>" }}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- else -%}
        {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}
""",
}

CONVERSATIONS = [
    [("user", "Hello there")],
    [("system", "Be kind."), ("user", "Hi")],
    [("user", "  a b \n"), ("assistant", " Sure! \n"), ("user", "\u00a0{bos} more <|im_end|>\u3000")],
    [("system", " Be\tterse. \n"), ("user", " one "), ("assistant", "two"), ("user", "three"),
     ("assistant", "<think>\nhm\n</think>\n\n four "), ("user", " five")],
]


def refuse(sentence):
    raise jinja2.exceptions.TemplateError(sentence)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
environment.globals["raise_exception"] = refuse
environment.globals["strftime_now"] = DAY.strftime
cases = []
for family, template in TEMPLATES.items():
    texts = []
    for conversation in CONVERSATIONS:
        messages = [{"role": role, "content": content} for role, content in conversation]
        try:
            texts.append(environment.from_string(template).render(
                messages=messages, bos_token="<s>", eos_token="</s>", add_generation_prompt=True))
        except jinja2.exceptions.TemplateError:
            texts.append(None)
    cases.append({"family": family, "template": template, "texts": texts})
print(json.dumps({"day": DAY.strftime("%Y-%m-%d"), "conversations": CONVERSATIONS, "cases": cases}, indent=1,
                 ensure_ascii=False))
