// JSON from outside, parsed without exceptions and read through accessors that check every type.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "converter/files/input.h"
#include "qsf/base/result.h"

namespace qsf::convert {

using Json = nlohmann::json;

// Limits, because a value takes many times the memory of its text. The largest current tokenizer.json has 33 MiB and 3
// million values; the longest texts are chat templates.
inline constexpr std::uint64_t kMaxJsonBytes = 256u << 20;
inline constexpr std::uint32_t kMaxJsonValues = 1u << 23;  // counted by separators: , : [ {
inline constexpr std::uint32_t kMaxJsonText = 4u << 20;    // bytes of one text or number
inline constexpr std::uint32_t kMaxJsonDepth = 64;

/// Parses one JSON value. NaN, Infinity and -Infinity are numbers, as in Python's json. Returns bad_input, with `what`
/// as the name, if the text is not one JSON value (with line and column), if an object has a key twice, or if a limit
/// is passed.
Result<Json> parse_json(std::string_view text, std::string_view what);

/// Parses a range of an input, which is read piece by piece. Errors name the input.
Result<Json> read_json(const Input& input, std::uint64_t offset, std::uint64_t size);
/// Parses a whole file. Returns null if there is no such file.
Result<Json> read_json(const InputFolder& folder, const std::string& file);

/// Returns null if `json` is not an object, does not have the key, or has null there.
const Json* find(const Json& json, std::string_view key);
/// Empty if `json` is not a whole number from 0.
std::optional<std::uint64_t> as_u64(const Json& json);
/// Returns null if `json` is not a string.
const std::string* as_text(const Json& json);
/// Returns the value for error sentences, shortened; "missing" for null.
std::string shown(const Json& json);

/// The fields of one object. A field of the wrong type returns its fallback, and the first such error is kept, so that
/// a list of fields is read first and checked once. Null counts as absent.
class Fields {
 public:
  /// `json` and `where` must outlive the object. `where` is the file's name for error sentences.
  Fields(const Json& json, std::string_view where) : json_(json), where_(where) {}

  bool has(std::string_view key) const { return find(json_, key) != nullptr; }
  const Json* get(std::string_view key) const { return find(json_, key); }

  /// Returns a finite number. Without a fallback the field is required.
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
