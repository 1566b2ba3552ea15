// One session in one arena, for JavaScript, with the calls of boundary.def that engine.h does not have. Instances share
// only the module's memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qsf/base/checksum.h"
#include "qsf/chat/answer_form.h"
#include "qsf/chat/answer_parts.h"
#include "qsf/chat/conversation.h"
#include "qsf/chat/guide.h"
#include "qsf/engine.h"
#include "qsf/run/draft.h"
#include "wasm/convert.h"
#include "wasm/sampler_lists.h"
#include "wasm/workers.h"

namespace qsf::wasm {

struct Segment : SegmentEntry {
  bool pinned, by_text;
};

/// Numbers of a SavedHeader.
struct Saved {
  std::uint32_t n_tokens, note_bytes, note_crc;
};

/// The segments of a session's file.
class Segments {
 public:
  explicit Segments(const Session& session) : session_(&session) {}
  std::size_t size() const { return session_->segments().size(); }
  Segment operator[](std::size_t i) const {
    const auto index = static_cast<std::uint32_t>(i);
    return {session_->segments()[i], session_->is_pinned(index), session_->is_by_text(index)};
  }

 private:
  const Session* session_;
};

class Instance;

/// The parts of an answer that a step completed.
class NewParts {
 public:
  explicit NewParts(Instance& instance) : instance_(&instance) {}
  void read(const chat::PartSink& sink) const;

 private:
  Instance* instance_;
};

/// boundary.def documents the calls.
class Instance {
 public:
  Instance(std::uint32_t threads, bool tuned) : threads_(threads, tuned) {}
  ~Instance() { threads_.end(); }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// open() must have succeeded.
  Session& session() { return *session_; }

  Status open(std::uint64_t budget, std::uint64_t file_size, bool vouched, std::optional<KvType> kv,
              const OpenOptions& options);
  void close() { threads_.end(); }
  void use_draft(Instance& draft);
  Result<bool> open_draft(std::uint64_t budget, std::uint64_t file_size, bool vouched, bool again,
                          const OpenOptions& options);
  Status check_draft();
  Error draft_note(std::uint32_t i) const;
  Result<bool> begin_guess();
  bool take_guess();
  Step step();
  std::optional<ReadRequest> next_request();
  std::uint32_t crc32(std::uint32_t at, std::uint32_t size) const;
  void add_to_digest(std::uint32_t size) { sum_.update(staging().first(std::min<std::size_t>(size, staging_size_))); }
  std::string_view digest();
  void fail(std::uint32_t ticket, std::uint32_t code, std::uint32_t size);
  std::optional<std::span<std::uint8_t>> stage(std::uint32_t size);
  Status start(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens, std::uint32_t stops_size,
               const SamplerOptions& sampler, const Prompt& options);
  Status embed(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens, std::optional<Pooling> pooling,
               std::optional<bool> normalize, const EmbedPrompt& options);
  Status rerank(std::uint32_t sequence, std::uint32_t query, std::uint32_t document);
  std::uint32_t guides(bool grammars);
  Status guide(std::optional<GrammarKind> kind, std::uint32_t size);
  Status hold(std::uint32_t thought, bool calls, bool required, std::uint32_t name);
  Status sampling(std::uint32_t sequence, std::uint32_t n_biases, std::optional<std::uint32_t> samplers,
                  std::optional<std::uint32_t> breakers);
  Error error() const { return guide_error_ ? *guide_error_ : session_->error(); }
  Status converse(std::optional<std::uint32_t> sequence, std::uint32_t chat_template, std::uint32_t values,
                  std::uint32_t more, const templates::Time& now);
  Bytes conversation() const { return {conversation_.rendered.text}; }
  Status answer(std::uint32_t sequence, std::uint32_t stops_size, const SamplerOptions& sampler, const Prompt& options);
  NewParts parts() { return NewParts(*this); }
  std::string_view metadata(std::uint32_t size) const { return session_->metadata(staged(0, size)); }
  Result<Bytes> begin_save(std::uint32_t sequence, std::uint32_t note_bytes, std::uint32_t note_crc);
  Result<Bytes> save();
  Result<Saved> begin_restore(std::uint32_t sequence, std::uint64_t file_size);
  Result<bool> restore(std::uint32_t size);
  Result<std::span<const std::uint32_t>> tokenize(std::uint32_t text_size, bool special);
  Segments segments() const { return Segments(*session_); }

 private:
  friend class NewParts;
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  using Block = std::unique_ptr<std::byte, Free>;

  /// The lists of a sequence's sampling, which view the memory.
  struct Lists {
    Lists(Block block, const SamplerLists& read) : memory(std::move(block)), lists(read) {}
    Block memory;
    SamplerLists lists;
  };

  /// The reader of a sequence's answer.
  struct Answer {
    std::optional<chat::AnswerParts> parts;
    bool reading = false;  // the last generation of the sequence is an answer, whose parts are read
  };
  struct LastStep {
    Step step;
    std::uint32_t sequence;
  };
  /// A guide, and the sequence of the last generation that it was for.
  struct Held {
    chat::Guide guide;
    std::optional<std::uint32_t> sequence;
  };
  /// The guides that follow grammars, or those that only limit thoughts, once one was needed.
  using Guides = std::vector<Held>;

  /// Opens a session. Takes an arena first if there is none.
  Status begin(std::uint64_t budget, std::uint64_t file_size, const OpenOptions& options);
  /// Returns the options with the sequence's lists.
  SamplerOptions with_lists(const SamplerOptions& numbers, std::uint32_t sequence) const;
  /// Adds the stop strings that are staged from `begin` on to the prompt's, and begins the generation, which may be an
  /// answer.
  Status generate(Prompt& prompt, std::size_t begin, std::size_t size, bool is_answer, std::uint32_t sequence);
  /// Returns the guides with grammars, or for thoughts only. Builds them if there are none.
  Result<Guides*> build_guides(bool grammars);
  /// Makes a guide, with grammars or for thoughts only, that of the next generation. Fails with bad_state while all are
  /// in use.
  Status take_guide(bool grammars);
  /// Returns the guide of a sequence's last generation; null if it was not held.
  Held* guide_of(std::uint32_t sequence);
  /// Gives the guide of the last step's sequence its token, after the reader of the answer.
  Status follow();
  bool runs(std::uint32_t sequence) const { return session_->end(sequence) == End::none; }
  /// Forgets the reader and the guide of the sequence's last generation.
  void forget(std::uint32_t sequence);
  /// Whether an answer is generated, whose parts are read in the memory for texts.
  bool answers() const;
  /// Divides the memory for texts that the guides leave. While answers are generated, the memory of parts stays.
  chat::TextMemory texts();
  /// Returns at most `size` staged bytes.
  std::span<const std::byte> staged_bytes(std::size_t size) const {
    return staging().first(std::min(size, staging_size_));
  }
  /// Returns at most `size` staged bytes from `begin` on.
  std::string_view staged(std::size_t begin, std::size_t size) const;
  std::span<const std::uint32_t> staged_tokens(std::size_t n) const;
  std::span<std::byte> staging() const { return {staging_.get(), staging_size_}; }

  LentThreads threads_;
  Block arena_;
  std::size_t arena_size_ = 0;
  Block staging_;
  Sha256 sum_;
  std::array<char, 65> digest_{};              // of the last digest()
  std::vector<std::unique_ptr<Lists>> lists_;  // by sequence; null: the default
  std::size_t staging_size_ = 0;
  Session* session_ = nullptr;
  chat::Tokens conversation_;       // in the session's memory for texts
  chat::AnswerForm answer_form_;    // of its template
  std::vector<Answer> answers_;     // by sequence
  std::span<std::byte> of_parts_;   // the memory for their parts, an equal share for each
  std::optional<LastStep> unread_;  // the last step, if its parts were not read
  std::array<Guides, 2> guides_;    // in that memory too: for thoughts only, with grammars
  std::size_t of_guides_ = 0;       // its last bytes, which they take
  Held* next_guide_ = nullptr;      // of the next generation
  struct Unfollowed {
    std::uint32_t sequence, token;
  };
  std::optional<Unfollowed> unfollowed_;  // the token that a guide was not given
  std::optional<Error> guide_error_;      // of the last step
  struct Calls {
    bool required;
    std::string only;
  };
  std::optional<Calls> calls_;  // rules for the next conversation
  SavedHeaderBytes saved_header_{};
  std::optional<ReadRequest> request_;   // taken from the session, but not by JavaScript yet
  std::uint32_t steps_ = 1;              // between two readings of the clock
  Instance* draft_ = nullptr;            // of this model
  std::optional<DraftOpening> opening_;  // of this draft
  std::optional<DraftGuesses> guesses_;  // by draft_
};

}  // namespace qsf::wasm
