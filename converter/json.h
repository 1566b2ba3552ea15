// JSON from outside: parsed without exceptions, and read through accessors that check every type.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "converter/input.h"
#include "qsf/base/result.h"

namespace qsf::convert {

using Json = nlohmann::json;

// Bounds on what is read, since a value takes many times the memory of its text. The largest tokenizer.json of today's
// models has 33 MiB and 3 million values; chat templates are the longest texts.
inline constexpr std::uint64_t kMaxJsonBytes = 256u << 20;
inline constexpr std::uint32_t kMaxJsonValues = 1u << 23;  // counted by what parts them: , : [ {
inline constexpr std::uint32_t kMaxJsonText = 4u << 20;    // of one text or number
inline constexpr std::uint32_t kMaxJsonDepth = 64;

/// bad_input, naming `what`, when the text is not one JSON value or passes a bound.
Result<Json> parse_json(std::string_view text, std::string_view what);

/// The same of a range of an input, read piece by piece; errors name the input.
Result<Json> read_json(const Input& input, std::uint64_t offset, std::uint64_t size);
/// The same of a whole file; null when there is no such file.
Result<Json> read_json(const InputFolder& folder, const std::string& file);

/// nullptr when `json` is not an object, has no such key, or holds null there.
const Json* find(const Json& json, std::string_view key);
/// Empty when `json` is not a whole number from 0.
std::optional<std::uint64_t> as_u64(const Json& json);
/// nullptr when `json` is not a string.
const std::string* as_text(const Json& json);

/// The fields of one object. A field of another type than asked for is an error that is kept (the first one wins) while
/// the fall-back is returned, so that a list of fields is read first and checked once. Null counts as absent.
class Fields {
 public:
  /// `json` and `where` (the name of the file, for sentences) must outlive the object.
  Fields(const Json& json, std::string_view where) : json_(json), where_(where) {}

  bool has(std::string_view key) const { return find(json_, key) != nullptr; }
  const Json* get(std::string_view key) const { return find(json_, key); }

  /// Without a fall-back the field must be there.
  std::uint32_t u32(std::string_view key, std::optional<std::uint32_t> fallback = {});
  double number(std::string_view key, std::optional<double> fallback = {});
  bool flag(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::string_view fallback);

  const Status& status() const { return status_; }

 private:
  void fail(std::string_view key, const char* expected);

  const Json& json_;
  std::string_view where_;
  Status status_;
};

}  // namespace qsf::convert
