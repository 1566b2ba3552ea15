// The chat template of an open model: conversations to token ids, and which of them a sequence has already.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qsf/engine.h"
#include "qsf/text/chat.h"

namespace qsf {

/// What a part of an answer is for, where a template tells that in headers.
enum class Speech : std::uint8_t {
  answer,   // the user
  thought,  // the model itself
  header,   // neither: who speaks, and where
};

/// What the text behind `ids` is for. Headers begin with `start` or the first of `final_mark`, which names a channel,
/// and end with its last; an answer follows all of it, or a header without a channel.
Speech speech_behind(std::span<const std::uint32_t> ids, std::uint32_t start,
                     std::span<const std::uint32_t> final_mark);

class Chat {
 public:
  /// unsupported where the file has no chat template or one that is not known; bad_text where it has no tokenizer.
  static Result<Chat> open(Session& session);

  const ChatFamily& family() const { return *family_; }
  /// For Prompt::end_tokens; empty where what ends an answer is no token of this vocabulary.
  std::span<const std::uint32_t> end_tokens() const { return end_tokens_; }
  /// For Prompt::stops in that case; else empty.
  std::string_view stop() const { return end_tokens_.empty() ? std::string_view(end_) : std::string_view(); }

  /// As render_chat().
  Result<std::string> render(std::span<const ChatMessage> messages) const;
  /// The ids of what is rendered, with the model's begin token in front where it expects one. Special tokens are those
  /// of the template, never of a message. context_full where they leave no room for an answer.
  Result<std::vector<std::uint32_t>> tokenize(Session& session, std::span<const ChatMessage> messages) const;
  /// What the text behind a sequence's `ids` is for.
  Speech speech(std::span<const std::uint32_t> ids) const;
  /// What an answer is remembered by.
  std::string_view remembered(Session& session, std::span<const std::uint32_t> ids, std::string_view text) const;

 private:
  struct Text;
  Chat(const ChatFamily& family, Session& session);
  Result<Text> text_of(std::span<const ChatMessage> messages) const;
  Result<std::vector<std::uint32_t>> ids_of(Session& session, std::string_view text) const;

  const ChatFamily* family_;
  std::string_view bos_, eos_;  // in the session's memory
  std::string date_;
  std::vector<std::uint32_t> end_tokens_, final_mark_;
  std::uint32_t start_ = kNoToken;  // of an answer, where there are headers
  std::string end_;
};

/// Takes the first sequence back to where it agrees with `ids`, and gives those that are still to be fed: one at least.
Result<std::span<const std::uint32_t>> feed_on(Session& session, std::span<const std::uint32_t> ids);

}  // namespace qsf
