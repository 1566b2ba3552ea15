// Conversations by a chat template: their text and their token ids. Results are in memory of the caller.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/engine.h"
#include "qsf/templates/template.h"

namespace qsf::chat {

/// Names of special tokens that templates know, which are transformers'.
inline constexpr std::array<std::string_view, 7> kSpecialTokens{"bos_token", "eos_token", "pad_token", "unk_token",
                                                                "sep_token", "cls_token", "mask_token"};

struct Conversation {
  std::string_view chat_template = {};  // empty: the file's own
  std::string_view values = {};         // a JSON object: `messages`, `tools`, `add_generation_prompt` and further ones
  std::string_view more = {};           // a JSON object whose members replace those of `values`; may be empty
  templates::Time now = {};
};

/// Returns the template of a conversation, which may be empty.
std::string_view template_of(const Session& session, const Conversation& conversation);

/// A text in memory of the caller.
struct RenderedText {
  std::string_view text;
  std::span<const TextRange> plain;  // the parts that are not the template's own
  std::span<std::byte> rest;         // memory that is free
};

/// Runs a template in `memory`, where the text is then. Errors: those of Template::parse() and Template::render().
Result<RenderedText> render(std::string_view chat_template, const templates::Variables& variables,
                            std::span<std::byte> memory);

/// Renders a conversation with an open model's special tokens. Errors: unsupported without a chat template, and those
/// above.
Result<RenderedText> render(const Session& session, const Conversation& conversation, std::span<std::byte> memory);

/// Returns the special tokens that the session's file names, as a JSON object in `memory`. Names are those of
/// transformers.
Result<std::string_view> special_tokens(const Session& session, std::span<std::byte> memory);

struct Tokens {
  std::span<const std::uint32_t> ids;
  RenderedText rendered;
};

/// Returns the ids of the rendered text, with the model's begin token in front if it expects one. Special tokens come
/// only from the template. Fails also with context_full if they leave no room for an answer, and with bad_text without
/// a tokenizer.
Result<Tokens> tokenize(Session& session, const Conversation& conversation, std::span<std::byte> memory);

}  // namespace qsf::chat
