// The reader of an answer while it streams: it separates text, thoughts and calls by the marks around them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "answers/body_scan.h"
#include "answers/out.h"
#include "answers/tools.h"
#include "qsf/answers/marks.h"
#include "qsf/answers/part.h"
#include "qsf/answers/place.h"

namespace qsf::answers {

/// Takes text in pieces of any size, and marks that are tokens. Gives parts to the sink of each call. Blanks next to
/// marks belong to no part. A body that ends as no call is text, with its marks.
class Reader {
 public:
  /// The least memory.
  static constexpr std::size_t kLeastMemory = 4096;

  /// Begins an answer. Without tools it has no calls. `memory` holds a call and its arguments: one that does not fit is
  /// text. `tools` and `memory` must outlive the reader.
  void begin(const Marks& marks, const Tools& tools, std::span<char> memory);
  /// Takes the end of the prompt, in which a template may have opened a thought or a header. With `drops_space`, the
  /// template writes the space with which an answer begins.
  void prompt(std::string_view text, bool drops_space);

  void text(std::string_view bytes, const PartSink& sink);
  /// Whether a mark that came as a token has a meaning here. The bytes of one without a meaning are text.
  bool takes(std::size_t mark) const;
  void mark(std::size_t mark, const PartSink& sink);
  /// Gives the rest.
  void end(const PartSink& sink);
  Place place() const;

 private:
  using Mode = PlaceKind;
  static constexpr std::size_t kNoRow = ~std::size_t{0};  // of a call without marks

  bool is_close(std::size_t mark) const;
  bool is_active(std::size_t mark) const;
  void match(char c);
  char take_pending();
  void drain();
  void unread(char c);

  void plain(char c);
  void plain_text(char c);
  void plain_thought(char c);
  void plain_body(char c);
  void plain_between(char c);

  void meet(std::size_t mark);
  void meet_in_text(std::size_t mark);
  void begin_thought(std::size_t row);
  void begin_body(std::size_t row);
  void begin_header(std::size_t mark);
  void end_header();
  void separate(bool from_earlier);

  bool add(char c);
  bool add_mark(std::size_t mark);
  bool take_calls(bool closed);
  void give_up();
  std::string_view body() const { return {body_.data() + n_front_, n_body_ - n_front_}; }

  void put_text(char c);
  void put_text(std::string_view text);
  void hold_blank(AnswerPart kind, char c);
  void put(AnswerPart kind, char c);
  void put_blanks(AnswerPart kind);
  void flush();

  Marks marks_;
  const Tools* tools_ = nullptr;
  const PartSink* sink_ = nullptr;
  bool prompting_ = false;  // in the prompt, whose marks are found as text and which gives no parts

  Mode mode_ = Mode::text;
  std::size_t row_ = kNoRow;  // of the thought or the call
  bool leads_ = false;        // blanks are dropped until something else comes
  bool drops_space_ = false;  // a space is dropped as the first byte
  bool fresh_ = true;         // no text since the beginning, or since the last thought or call
  bool strays_ = false;       // a header without a mark that began it, which may be text in fact
  bool has_text_ = false, has_thought_ = false;
  bool thought_has_begun_ = false;
  std::uint32_t n_bodies_ = 0;
  bool fenced_ = false;       // the last call was in a fence of code
  std::string_view skipped_;  // a word after the opening mark of a thought that belongs to the mark
  BodyScan scan_;
  std::span<char> body_;  // of a call or a header, with its marks as in source.h
  std::size_t n_body_ = 0;
  std::size_t n_front_ =
      0;  // bytes of body_ in front of it: the tool's name from a header, or the prompt's part of one
  Out out_;

  std::array<char, 48> pending_{};  // a text that may begin a mark
  std::size_t n_pending_ = 0;
  std::array<char, 64> blanks_{};  // that are text unless a mark follows
  std::size_t n_blanks_ = 0;
  std::array<char, 512> run_{};  // of one kind, not given yet
  std::size_t n_run_ = 0;
  AnswerPart run_kind_ = AnswerPart::text;
};

}  // namespace qsf::answers
