// Any bytes as an answer: nothing may crash, the cuts between pieces must not matter, and arguments must be JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/answers/reader.h"
#include "engine/answers/syntaxes.h"
#include "qsf/base/json.h"

namespace qsf::test {

using Parts = std::vector<std::pair<AnswerPart, std::string>>;

/// Aborts unless a text is a JSON object, whose members may have one name twice and whose texts may be no UTF-8.
inline void check_arguments(std::string_view text) {
  static std::vector<std::byte> memory(1 << 20);
  Store store(memory);
  const Result<json::Document> read = json::Document::read(text, store);
  if (read) {
    if ((*read)[json::Document::kRoot].kind != json::Kind::object) std::abort();
    return;
  }
  const std::string_view sentence = read.error().sentence;
  if (sentence.find("twice") == sentence.npos && sentence.find("UTF-8") == sentence.npos) std::abort();
}

/// Returns the parts of an answer that comes in pieces of a size, each text in one part.
inline Parts parts_of(std::string_view chat_template, bool tokens, std::string_view answer, std::size_t piece) {
  constexpr std::string_view kTools =
      R"({"tools": [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}, "b": {"type": "object"}}}}]})";
  static std::vector<std::byte> memory(1 << 16), scratch(1 << 16);
  static std::vector<char> room(1 << 15);
  Store store(memory), of_json(scratch);
  Result<answers::Tools> tools = answers::Tools::read(kTools, {}, store, of_json);
  if (!tools) std::abort();
  answers::Marks marks;
  marks.add_rows(chat_template);
  for (std::size_t i = 0; tokens && i < answers::kMarks; ++i) marks.tokens[i] = static_cast<std::uint32_t>(i);
  Parts parts;
  const answers::PartSink sink{&parts, [](void* to, const answers::Part& part) {
                                 Parts& all = *static_cast<Parts*>(to);
                                 if (part.text.empty()) std::abort();
                                 const bool of_call = part.kind >= AnswerPart::call;
                                 if (of_call || all.empty() || all.back().first != part.kind) {
                                   all.emplace_back(part.kind, "");
                                 }
                                 all.back().second += part.text;
                                 if (part.kind == AnswerPart::arguments) check_arguments(part.text);
                               }};
  answers::Reader reader;
  reader.begin(marks, *tools, room);
  reader.prompt(chat_template.substr(chat_template.size() / 2), false);
  for (std::size_t at = 0; at < answer.size();) {
    // In an answer with tokens, the byte 1 and the next one are a mark.
    if (tokens && answer[at] == '\1') {
      const std::size_t mark =
          at + 1 < answer.size() ? static_cast<unsigned char>(answer[at + 1]) % answers::kMarks : 0;
      if (marks.has(mark / 2) && reader.takes(mark)) reader.mark(mark, sink);
      at += 2;
      continue;
    }
    const std::size_t next = tokens ? std::min(answer.find('\1', at), answer.size()) : answer.size();
    const std::size_t size = std::min(piece, next - at);
    reader.text(answer.substr(at, size), sink);
    at += size;
  }
  reader.end(sink);
  return parts;
}

/// The first byte is t for marks that are tokens, and anything else for marks as text. The template ends at a zero
/// byte, and the answer follows. Returns whether it has a call.
inline bool fuzz_answers(std::string_view data) {
  if (data.empty()) return false;
  const std::size_t end = std::min(data.find('\0'), data.size());
  const std::string_view chat_template = data.substr(1, end - 1);
  const std::string_view answer = end < data.size() ? data.substr(end + 1) : std::string_view();
  const bool tokens = data[0] == 't';
  const Parts parts = parts_of(chat_template, tokens, answer, answer.size() + 1);
  for (const std::size_t piece : {1, 3, 50}) {
    if (parts_of(chat_template, tokens, answer, piece) != parts) std::abort();
  }
  return std::ranges::any_of(parts, [](const auto& part) { return part.first == AnswerPart::call; });
}

}  // namespace qsf::test
