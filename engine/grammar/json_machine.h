// A JSON text that follows a schema, read byte by byte. The text's syntax is a stack of frames, one for each array or
// object that is open; each frame knows which rules of its profile have failed. A text is refused as soon as the
// conditions that remain open cannot save it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "grammar/profiles.h"
#include "grammar/utf8_state.h"

namespace qsf::grammar {

/// The deepest nesting of a text, and the most white space between two of its parts, in bytes: a model that falls into
/// a loop of spaces would otherwise never end.
inline constexpr std::uint32_t kMaxFrames = 128;
inline constexpr std::uint32_t kMaxSpaces = 256;

enum class Mode : std::uint8_t {
  value,       // a value is expected
  first_item,  // a value or the end of an array
  first_key,   // a name or the end of an object
  next_key,    // a name
  string,
  escape,      // after a backslash
  hex,         // in the digits of \u
  low_escape,  // a backslash is expected, of a low surrogate
  low_u,       // its u
  low_hex,     // its digits
  number,
  word,   // true, false or null
  colon,  // after a name
  after,  // after a value in a frame
  done,   // after the whole value
};

/// A place in a text. Copies are cheap and independent.
struct JsonState {
  std::uint32_t frame = 0;    // the innermost open array or object; 0: none
  std::uint32_t profile = 0;  // of the value that is expected or read
  std::uint32_t text = 0;     // the state of a string's, name's or number's conditions
  std::uint32_t chars = 0;    // of a string so far
  std::uint32_t code = 0;     // of an escape so far
  std::uint32_t keys = 0;     // a hash of the name so far
  std::uint16_t spaces = 0;
  Mode mode = Mode::value;
  Utf8State utf8 = 0;
  std::uint8_t place = 0;  // digits of an escape, or letters of a word
  Type type = Type::null;  // of a word
  bool strict = true;      // every root of the profile must hold
  bool key = false;        // the string is a name
  bool open = false;       // a name outside of the profile's is possible
};

class JsonMachine {
 public:
  using State = JsonState;

  bool init(Store& store, Checks& checks, Profiles& profiles, std::uint32_t root);

  const State& begin() const { return begin_; }
  /// Advances by a byte. Returns false if no text that goes on so follows the schema.
  bool step(const State& from, std::uint8_t byte, State& to);
  bool can_end(const State& state);
  /// Whether any text of up to `chars` characters may follow inside of the state's string, as long as there are no more
  /// than chars_left().
  bool is_free(const State& state, std::uint32_t chars) const;
  /// Advances by plain bytes inside of a free string.
  void pass(State& state, std::string_view bytes);
  /// The characters that the string may still have, or kNoLimit.
  std::uint32_t chars_left(const State& state) const;
  /// Whether the masks of the state's string or name depend on nothing but its conditions.
  bool is_local(const State& state) const;

  bool unlimited = false;  // strings may have any length; for masks of all lengths

  /// Steps since a mark are forgotten at release().
  struct Mark {
    std::uint32_t frames, words, keys;
  };
  Mark mark() const { return {frames_.size(), words_.size(), keys_.size()}; }
  void release(const Mark& mark) {
    frames_.shrink(mark.frames);
    words_.shrink(mark.words);
    keys_.shrink(mark.keys);
    forget();
  }
  /// Forgets the frames that `state` does not need, and corrects it.
  void compact(State& state);

 private:
  struct Frame {
    std::uint32_t parent = 0, profile = 0;
    std::uint32_t value = 0;   // the class of the member or element that is expected or read
    std::uint32_t count = 0;   // of members or elements that have begun
    std::uint32_t seen = 0;    // words_: the names that have occurred
    std::uint32_t keys = 0;    // keys_: the last name that is not the profile's
    std::uint64_t failed = 0;  // rules
    std::uint32_t contained[kMaxContains] = {};
    std::uint8_t depth = 0;
    bool object = false, strict = true;
  };
  struct Key {
    std::uint32_t hash = 0, before = 0;
  };
  /// A change of a frame that is tried.
  struct Trial {
    std::uint64_t failed = 0;
    std::uint64_t pending = 0;  // rules that the value that is being read may still fail
    std::uint32_t count = 0;
    std::uint32_t name = kNoName;  // in addition to those that have occurred
    bool final = false;
  };

  /// An answer that was found before, as long as no frames are forgotten.
  struct Answer {
    std::uint64_t a = 0, b = 0;
    std::uint32_t frame = 0, c = 0;
    std::uint8_t kind = 0;  // 0: none
    bool yes = false;
  };
  void forget() { answers_.fill({}); }
  /// Returns the answer to a question, which `find` finds if it is not stored.
  template <class Find>
  bool answer(Answer question, const Find& find) const {
    const std::uint64_t hash = mix(mix(mix(question.frame, question.a), question.b), question.c + question.kind);
    Answer& stored = answers_[hash >> 32 & (answers_.size() - 1)];
    if (stored.kind != question.kind || stored.frame != question.frame || stored.a != question.a ||
        stored.b != question.b || stored.c != question.c) {
      question.yes = find();
      stored = question;
    }
    return stored.yes;
  }

  Trial trial(const Frame& frame) const { return {frame.failed, 0, frame.count, kNoName, false}; }
  std::uint64_t linked(const ValueClass& value_class) const;
  Status3 object_rule(const Profile& p, const Frame& f, std::uint32_t slot, const Trial& t) const;
  Status3 array_rule(const Profile& p, const Frame& f, std::uint32_t slot, const Trial& t) const;
  void rules(const Profile& p, const Frame& f, const Trial& t, Status3* roots) const;
  bool holds(std::uint32_t frame, const Trial& t) const;
  bool supports(std::uint32_t frame, const Status3* roots, bool strict) const;
  bool is_strict(std::uint32_t frame, std::uint32_t value_class) const;
  bool enter(State& s, std::uint32_t value_class);

  bool value_possible(const Frame& frame, const ValueClass& value_class) const;
  bool element_possible(std::uint32_t frame) const;
  bool step_value(State& s, std::uint8_t byte);
  bool step_string(State& s, std::uint8_t byte);
  bool content(State& s, std::uint8_t byte);
  std::uint32_t refused(State& s, std::uint32_t code);
  bool character(State& s, std::uint32_t code) { return refused(s, code) == 0; }
  bool may_become(const State& s, std::uint32_t first, std::uint32_t last);
  bool text_possible(const State& s, Type type, const Verdicts& v, std::uint32_t chars) const;
  bool string_alive(const State& s);
  bool any_name_possible(const State& s);
  void string_roots(const State& s, Status3* roots) const;
  bool text_ends(const State& s) const;
  /// A name that ends: its number among the profile's or kNoName, the patterns that it matches, and the roots that
  /// fail.
  struct NameEnd {
    std::uint32_t name;
    std::uint64_t patterns, failing;
  };
  NameEnd name_end(const State& s) const;
  bool key_alive(const State& s) const;
  bool may_differ(const State& s) const;
  bool differs(const State& s, std::uint32_t& steps) const;
  bool is_taken(const Frame& frame, std::uint32_t name_hash) const;
  bool end_string(State& s);
  bool end_key(State& s);
  bool end_number(State& s);
  bool number_alive(const State& s);
  bool find_number(const State& s);
  bool number_roots(const State& s, std::uint32_t text, Status3* roots) const;
  bool step_after(State& s, std::uint8_t byte);
  bool complete(State& s, const Status3* roots);
  bool close(State& s);
  bool push(State& s, bool object);
  bool member_possible(std::uint32_t frame, std::uint32_t name, std::uint64_t patterns, std::uint64_t failing) const;
  bool find_member_possible(std::uint32_t frame, std::uint32_t name, std::uint64_t patterns,
                            std::uint64_t failing) const;
  bool any_patterns_possible(std::uint32_t frame) const;
  bool name_possible(std::uint32_t frame, std::uint32_t name, std::uint32_t text, std::uint32_t shared) const;
  bool key_possible(std::uint32_t frame, bool& open) const;
  bool any_member_possible(std::uint32_t frame, bool& open) const;
  bool first_names(const State& s, std::uint32_t first, std::uint32_t last) const;
  bool seen(const Frame& f, std::uint32_t name) const { return (words_[f.seen + name / 64] >> name % 64 & 1) != 0; }

  Checks* checks_ = nullptr;
  Profiles* profiles_ = nullptr;
  Table<Frame> frames_;
  Table<std::uint64_t> words_;
  Table<Key> keys_;
  Table<std::uint32_t> spare_;
  mutable std::array<Answer, 256> answers_{};
  State begin_;
};

}  // namespace qsf::grammar
