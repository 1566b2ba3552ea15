// Answers that are read in pieces, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/reader.h"
#include "answers/syntaxes.h"

namespace qsf::answers::test {

/// A part as a test expects it. Pieces of one text are one part here, and a call is one with its name and arguments.
struct Said {
  AnswerPart kind;
  std::string text, arguments = {};
  bool operator==(const Said&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Said& said) {
  return out << kPartNames[static_cast<std::size_t>(said.kind)] << ": " << said.text << ' ' << said.arguments << '\n';
}
inline Said text(std::string_view what) { return {AnswerPart::text, std::string(what)}; }
inline Said thought(std::string_view what) { return {AnswerPart::thought, std::string(what)}; }
inline Said call(std::string_view name, std::string_view arguments) {
  return {AnswerPart::call, std::string(name), std::string(arguments)};
}

inline constexpr std::string_view kTools = R"({"tools": [
  {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters":
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}},
  {"name": "set", "parameters": {"type": "object", "properties": {
    "number": {"type": "number"}, "truth": {"type": "boolean"}, "list": {"type": "array", "items": {}},
    "object": {"type": "object"}, "nothing": {"type": "null"}, "maybe": {"type": ["string", "null"]},
    "either": {"anyOf": [{"type": "integer"}, {"type": "array"}]}, "level": {"enum": [1, 2, 3]},
    "one": {"const": true}, "referred": {"$ref": "#/$defs/Level"}, "any": {}},
    "$defs": {"Level": {"enum": [10, 20]}}}},
  {"type": "function", "function": {"name": "now"}}]})";

/// Tools in memory of their own.
class OwnTools {
 public:
  explicit OwnTools(std::string_view values = kTools, std::string_view more = {})
      : memory_(1 << 16), scratch_(1 << 16) {
    Store store(memory_), scratch(scratch_);
    Result<Tools> read = Tools::read(values, more, store, scratch);
    EXPECT_TRUE(read) << read.error().sentence;
    if (read) tools = *read;
    std::ranges::fill(scratch_, std::byte{0xCC});
  }
  Tools tools;

 private:
  std::vector<std::byte> memory_, scratch_;
};

/// The token of a mark in a vocabulary that has all of them. Marks of several rows with one text have one token.
inline std::uint32_t token_of(std::size_t mark) {
  std::size_t first = 0;
  while (mark_text(first) != mark_text(mark)) ++first;
  return 1000 + static_cast<std::uint32_t>(first);
}

/// The marks of a template; with `tokens`, each of them is a special token.
inline Marks marks_of(std::string_view chat_template, bool tokens) {
  Marks marks;
  marks.add_rows(chat_template);
  if (!tokens) return marks;
  for (std::size_t i = 0; i < kMarks; ++i) {
    if (!mark_text(i).empty()) marks.tokens[i] = token_of(i);
  }
  return marks;
}

class Reading {
 public:
  Reading(const Marks& marks, const Tools& tools, std::string_view prompt = {}, std::size_t memory = 1 << 16)
      : marks_(marks), memory_(memory) {
    reader_.begin(marks, tools, memory_);
    reader_.prompt(prompt, false);
  }

  void text(std::string_view bytes) { reader_.text(bytes, sink()); }
  /// Takes a text in which each mark that is a token comes as one, and the text between marks is cut at a byte.
  void with_tokens(std::string_view answer, std::size_t cut) {
    std::size_t begin = 0;
    const auto until = [&](std::size_t end) {
      const std::size_t middle = std::clamp(cut, begin, end);
      text(answer.substr(begin, middle - begin));
      text(answer.substr(middle, end - middle));
    };
    for (std::size_t at = 0; at < answer.size();) {
      const std::size_t mark = mark_at(answer.substr(at));
      if (mark == kMarks) {
        ++at;
        continue;
      }
      until(at);
      token(mark);
      begin = at += mark_text(mark).size();
    }
    until(answer.size());
  }
  void token(std::size_t mark) {
    const std::size_t found = marks_.find(token_of(mark));
    if (found != kMarks && reader_.takes(found)) {
      reader_.mark(found, sink());
    } else {
      text(mark_text(mark));
    }
  }
  std::vector<Said> end() {
    reader_.end(sink());
    return said_;
  }

 private:
  /// The longest mark at the beginning of a text, or kMarks.
  static std::size_t mark_at(std::string_view answer) {
    std::size_t best = kMarks;
    for (std::size_t i = 0; i < kMarks; ++i) {
      const std::string_view text = mark_text(i);
      if (text.empty() || !answer.starts_with(text)) continue;
      if (best == kMarks || text.size() > mark_text(best).size()) best = i;
    }
    return best;
  }
  PartSink sink() {
    return {this, [](void* to, const Part& part) { static_cast<Reading*>(to)->take(part); }};
  }
  void take(const Part& part) {
    EXPECT_FALSE(part.text.empty());
    if (part.kind == AnswerPart::arguments) {
      ASSERT_FALSE(said_.empty());
      ASSERT_EQ(said_.back().kind, AnswerPart::call);
      said_.back().arguments = part.text;
    } else if (part.kind != AnswerPart::call && !said_.empty() && said_.back().kind == part.kind) {
      said_.back().text += part.text;
    } else {
      said_.push_back({part.kind, std::string(part.text), {}});
    }
  }

  Marks marks_;
  std::vector<char> memory_;
  Reader reader_;
  std::vector<Said> said_;
};

}  // namespace qsf::answers::test
