// JSON from outside: parsed without exceptions, and read through accessors that check every type.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::convert {

using Json = nlohmann::json;

/// bad_input, naming `what`, when the text is not one JSON value.
Result<Json> parse_json(std::string_view text, std::string_view what);

/// The same of a file; null when there is no file at `path`.
Result<Json> read_json_file(const std::string& path);

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
