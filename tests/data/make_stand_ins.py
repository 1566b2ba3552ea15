"""Tiny models with random weights of architectures that transformers does not have, with golden values.

usage: make_stand_ins.py OUT_DIR TEXT_FILE [NAME...]

Each is computed by a model of transformers that has the same blocks under other names: its factors are settings of that
model or multiplied into its weights. The directory has the names and keys of the published models.
"""
import json
import os
import sys

import numpy as np
import torch
import transformers as T
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

V, D, F, L, H, KV, HD = 512, 64, 160, 4, 4, 2, 16
E, M = 8, 40  # experts and the width of one
BASE = dict(vocab_size=V, bos_token_id=0, eos_token_id=0, hidden_size=D, num_hidden_layers=L, num_attention_heads=H,
            max_position_embeddings=512)
SHORT, LONG = [1 + 0.02 * i for i in range(HD // 2)], [1.2 + 0.3 * i for i in range(HD // 2)]
LONGROPE = dict(rope_type='longrope', short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=512)


def plain(weights):
    """Returns the weights, whose names the stand-in and the published model share."""
    return weights


def minicpm():
    scales = dict(scale_emb=12, scale_depth=1.4, dim_model_base=32)
    sizes = dict(intermediate_size=F, num_key_value_heads=KV)
    stand_in = T.GraniteForCausalLM(T.GraniteConfig(
        **BASE, **sizes, embedding_multiplier=12.0, attention_multiplier=HD ** -0.5, residual_multiplier=1.4 / L ** 0.5,
        logits_scaling=D / 32, tie_word_embeddings=False,
        rope_parameters=dict(**LONGROPE, rope_theta=10000.0, factor=1.0, attention_factor=1.0)))
    return stand_in, plain, dict(model_type='minicpm', architectures=['MiniCPMForCausalLM'], **sizes, **scales, rope_theta=10000.0,
                                 rope_scaling=LONGROPE)


def internlm3():
    sizes = dict(intermediate_size=F, num_key_value_heads=KV)
    stand_in = T.Qwen2ForCausalLM(T.Qwen2Config(**BASE, **sizes, tie_word_embeddings=False, rms_norm_eps=1e-5,
                                                rope_parameters=dict(rope_type='default', rope_theta=50000.0)))
    return stand_in, plain, dict(model_type='internlm3', architectures=['InternLM3ForCausalLM'], **sizes, head_dim=HD, bias=False,
                                 qkv_bias=True, rope_theta=50000.0, rope_scaling=dict(factor=6.0, rope_type='dynamic'))


def internlm2_names(weights):
    names = {'model.embed_tokens': 'model.tok_embeddings', 'lm_head': 'output', 'self_attn.o_proj': 'attention.wo',
             'input_layernorm': 'attention_norm', 'post_attention_layernorm': 'ffn_norm', 'mlp.gate_proj': 'feed_forward.w1',
             'mlp.up_proj': 'feed_forward.w3', 'mlp.down_proj': 'feed_forward.w2'}
    out = {}
    for name, weight in weights.items():
        if '.q_proj.' in name:
            # Of each head of keys: the queries that share it, its keys and its values.
            q, k, v = [weights[name.replace('q_proj', f'{part}_proj')].view(KV, -1, D) for part in 'qkv']
            out[name.replace('self_attn.q_proj', 'attention.wqkv')] = torch.cat([q, k, v], 1).reshape(-1, D)
        elif '.k_proj.' not in name and '.v_proj.' not in name:
            part = next((part for part in names if part in name), '')
            out[name.replace(part, names[part]) if part else name] = weight
    return out


def internlm2():
    sizes = dict(intermediate_size=F, num_key_value_heads=KV)
    stand_in = T.LlamaForCausalLM(T.LlamaConfig(**BASE, **sizes, tie_word_embeddings=False, rms_norm_eps=1e-5,
                                                rope_parameters=dict(rope_type='default', rope_theta=1000000.0)))
    return stand_in, internlm2_names, dict(model_type='internlm2', architectures=['InternLM2ForCausalLM'], **sizes, bias=False,
                                           rope_theta=1000000.0, rope_scaling=dict(factor=2.0, type='dynamic'))


def bailing_names(weights):
    out = {}
    for name, weight in weights.items():
        name = name.replace('model.embed_tokens', 'model.word_embeddings').replace('self_attn.o_proj', 'attention.dense')
        name = name.replace('self_attn.q_norm', 'attention.query_layernorm').replace('self_attn.k_norm', 'attention.key_layernorm')
        name = name.replace('e_score_correction_bias', 'expert_bias')
        if '.q_proj.' in name:
            others = [weights[name.replace('q_proj', f'{part}_proj')] for part in 'kv']
            out[name.replace('self_attn.q_proj', 'attention.query_key_value')] = torch.cat([weight, *others])
        elif '.k_proj.' in name or '.v_proj.' in name:
            continue
        elif 'router.layer' in name:
            out[name.replace('block_sparse_moe.router.layer', 'mlp.gate')] = weight
        elif name.endswith(('experts.gate_up_proj', 'block_sparse_moe.input_linear.weight')):
            for expert, both in enumerate(weight):
                for part, rows in zip(('gate', 'up'), both.chunk(2)):
                    out[f'{layer_of(name)}.mlp.experts.{expert}.{part}_proj.weight'] = rows
        elif name.endswith(('experts.down_proj', 'block_sparse_moe.output_linear.weight')):
            for expert, rows in enumerate(weight):
                out[f'{layer_of(name)}.mlp.experts.{expert}.down_proj.weight'] = rows
        elif 'shared_mlp.input_linear' in name:
            for part, rows in zip(('gate', 'up'), weight.chunk(2)):
                out[f'{layer_of(name)}.mlp.shared_experts.{part}_proj.weight'] = rows
        elif 'shared_mlp.output_linear' in name:
            out[f'{layer_of(name)}.mlp.shared_experts.down_proj.weight'] = weight
        else:
            out[name] = weight
    return out


def layer_of(name):
    return '.'.join(name.split('.')[:3])


def bailing_moe():
    stand_in = T.GraniteMoeSharedForCausalLM(T.GraniteMoeSharedConfig(
        **BASE, num_key_value_heads=KV, intermediate_size=M, num_local_experts=E, num_experts_per_tok=2, shared_intermediate_size=2 * M,
        embedding_multiplier=1.0, attention_multiplier=HD ** -0.5, residual_multiplier=1.0, logits_scaling=1.0,
        tie_word_embeddings=False, rms_norm_eps=1e-5))
    return stand_in, bailing_names, dict(
        model_type='bailing_moe', architectures=['BailingMoeForCausalLM'], num_key_value_heads=KV, intermediate_size=F, moe_intermediate_size=M,
        num_experts=E, num_experts_per_tok=2, num_shared_experts=2, norm_topk_prob=True, first_k_dense_replace=0, norm_head=False,
        use_bias=False, use_qkv_bias=False, rms_norm_eps=1e-5)


def bailing_moe_v2():
    sizes = dict(num_key_value_heads=KV, intermediate_size=F, head_dim=HD, moe_intermediate_size=M, num_experts_per_tok=2,
                 first_k_dense_replace=1, n_group=2, topk_group=1, routed_scaling_factor=2.5, norm_topk_prob=True)
    stand_in = T.Glm4MoeForCausalLM(T.Glm4MoeConfig(
        **BASE, **sizes, n_routed_experts=E, n_shared_experts=1, use_qk_norm=True, attention_bias=False, tie_word_embeddings=False,
        rope_parameters=dict(rope_type='default', rope_theta=600000.0, partial_rotary_factor=0.5)))
    return stand_in, bailing_names, dict(
        model_type='bailing_moe_v2', architectures=['BailingMoeV2ForCausalLM'], **sizes, num_experts=E, num_shared_experts=1,
        score_function='sigmoid', moe_router_enable_expert_bias=True, use_qk_norm=True, partial_rotary_factor=0.5, rope_theta=600000.0,
        rope_scaling=None, use_bias=False, use_qkv_bias=False, rms_norm_eps=stand_in.config.rms_norm_eps)


def minicpm3():
    sizes = dict(intermediate_size=F, num_key_value_heads=H, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=HD)
    stand_in = T.DeepseekV3ForCausalLM(T.DeepseekV3Config(
        **BASE, **sizes, v_head_dim=D // H, first_k_dense_replace=L, n_routed_experts=E, n_group=1, topk_group=1, num_experts_per_tok=2,
        moe_intermediate_size=M, rope_interleave=False, tie_word_embeddings=False, rms_norm_eps=1e-5,
        rope_parameters=dict(rope_type='default', rope_theta=10000.0)))
    depth = 1.4 / L ** 0.5
    factors = {'embed_tokens': 12, 'o_proj': depth, 'down_proj': depth, 'lm_head': 256 / D}

    def scale(model):
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.mul_(next((f for part, f in factors.items() if part in name), 1))

    stand_in.scale = scale
    return stand_in, plain, dict(
        model_type='minicpm3', architectures=['MiniCPM3ForCausalLM'], **sizes, scale_emb=12, scale_depth=1.4, dim_model_base=256,
        rms_norm_eps=1e-5, rope_theta=10000.0)


MODELS = {'minicpm': minicpm, 'minicpm3': minicpm3, 'internlm2': internlm2, 'internlm3': internlm3, 'bailing-moe': bailing_moe, 'bailing-moe-v2': bailing_moe_v2}


def fill(model):
    with torch.no_grad():
        for name, weight in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith('e_score_correction_bias'):
                weight.normal_(0, 0.1)
            elif name.endswith(('inv_freq',)):
                continue
            elif weight.dim() >= 2:
                weight.normal_(0, 0.5 if 'embed' in name else 0.9 / weight.shape[-1] ** 0.5)
            elif 'bias' in name:
                weight.normal_(0, 0.1)
            elif 'norm' in name:
                weight.uniform_(0.6, 1.4)


def golden(folder, name, model, fast, prompts):
    made, rows = {'model': name, 'vocab': V, 'prompts': []}, []
    for text in prompts:
        ids = fast(text, add_special_tokens=False)['input_ids']
        tokens = torch.tensor([ids])
        with torch.no_grad():
            logits = model(tokens, use_cache=False).logits[0].numpy().astype('<f4')
            for _ in range(32):
                tokens = torch.cat([tokens, model(tokens, use_cache=False).logits[:, -1:].argmax(-1)], 1)
            top = model(tokens, use_cache=False).logits[0, len(ids) - 1:-1].topk(2).values
        made['prompts'].append({'text': text, 'ids': ids, 'greedy': tokens[0, len(ids):].tolist(),
                                'min_top1_top2_gap': (top[:, 0] - top[:, 1]).min().item(),
                                'logits_offset': sum(a.size for a in rows), 'logits_shape': list(logits.shape)})
        rows.append(logits)
    np.concatenate([a.reshape(-1) for a in rows]).tofile(os.path.join(folder, 'golden.f32'))
    with open(os.path.join(folder, 'golden.json'), 'w', encoding='utf-8') as file:
        json.dump(made, file, ensure_ascii=False, indent=1)
    return [round(p['min_top1_top2_gap'], 4) for p in made['prompts']]


def main():
    out, text, *names = sys.argv[1:]
    torch.set_num_threads(1)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.train([text], trainers.BpeTrainer(vocab_size=V, special_tokens=['<|endoftext|>'], show_progress=False,
                                                initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = T.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token='<|endoftext|>', eos_token='<|endoftext|>')
    with open(text, encoding='utf-8') as file:
        words = file.read()
    prompts = [words[2000:2120], words[9000:9040], 'The king said, "caf\u00e9 \u4f60\u597d \U0001F600!"\n\n']
    for name in names or MODELS:
        torch.manual_seed(sum(map(ord, name)))
        model, published, config = MODELS[name]()
        model = model.float().eval()
        model.config._attn_implementation = 'eager'
        fill(model)
        # The file has bf16, so its numbers are rounded before any factor is multiplied into them.
        with torch.no_grad():
            for weight in [*model.parameters(), *(b for n, b in model.named_buffers() if n.endswith('correction_bias'))]:
                weight.copy_(weight.to(torch.bfloat16).float())
        # A copy: `state_dict` shares its memory with the model.
        stored = {k: v.detach().clone() for k, v in model.state_dict().items()}
        getattr(model, 'scale', lambda _: None)(model)
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        bf16 = {k: v.to(torch.bfloat16).contiguous() for k, v in published(stored).items()}
        save_file(bf16, os.path.join(folder, 'model.safetensors'), metadata={'format': 'pt'})
        with open(os.path.join(folder, 'config.json'), 'w', encoding='utf-8') as file:
            json.dump({**BASE, 'tie_word_embeddings': False, 'hidden_act': 'silu', 'rms_norm_eps': model.config.rms_norm_eps,
                       'torch_dtype': 'bfloat16', **config}, file, indent=2)
        fast.save_pretrained(folder)
        print(name, golden(folder, name, model, fast, prompts), flush=True)


main()
