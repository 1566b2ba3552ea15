#include "converter/json.h"

#include <limits>

#include "converter/mapped_file.h"

namespace qsf::convert {

Result<Json> parse_json(std::string_view text, std::string_view what) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return make_error(ErrorCode::bad_input, "{} is not valid JSON", what);
  }
  return json;
}

Result<Json> read_json_file(const std::string& path) {
  if (!is_file(path)) return Json(nullptr);
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  return parse_json(file->text(), std::string_view(path).substr(path.rfind('/') + 1));
}

const Json* find(const Json& json, std::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto at = json.find(std::string(key));
  return at == json.end() || at->is_null() ? nullptr : &*at;
}

std::optional<std::uint64_t> as_u64(const Json& json) {
  if (const auto* value = json.get_ptr<const Json::number_unsigned_t*>()) return *value;
  const auto* value = json.get_ptr<const Json::number_integer_t*>();
  return value && *value >= 0 ? std::optional<std::uint64_t>(*value) : std::nullopt;
}

const std::string* as_text(const Json& json) { return json.get_ptr<const std::string*>(); }

void Fields::fail(std::string_view key, const char* expected) {
  if (!status_) return;
  const Json* value = get(key);
  const std::string shown =
      value ? value->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60) : "missing";
  status_ = make_error(ErrorCode::bad_input, "{}: \"{}\" must be {}, but is {}", where_, key, expected, shown);
}

std::uint32_t Fields::u32(std::string_view key, std::optional<std::uint32_t> fallback) {
  const Json* value = get(key);
  if (!value && fallback) return *fallback;
  const std::optional<std::uint64_t> number = value ? as_u64(*value) : std::nullopt;
  if (number && *number <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(*number);
  fail(key, "a whole number below 2^32");
  return fallback.value_or(0);
}

double Fields::number(std::string_view key, std::optional<double> fallback) {
  const Json* value = get(key);
  if (!value && fallback) return *fallback;
  if (value) {
    if (const auto* d = value->get_ptr<const Json::number_float_t*>()) return *d;
    if (const auto* u = value->get_ptr<const Json::number_unsigned_t*>()) return static_cast<double>(*u);
    if (const auto* i = value->get_ptr<const Json::number_integer_t*>()) return static_cast<double>(*i);
  }
  fail(key, "a number");
  return fallback.value_or(0);
}

bool Fields::flag(std::string_view key, bool fallback) {
  const Json* value = get(key);
  if (!value) return fallback;
  if (const auto* b = value->get_ptr<const Json::boolean_t*>()) return *b;
  fail(key, "true or false");
  return fallback;
}

std::string Fields::text(std::string_view key, std::string_view fallback) {
  const Json* value = get(key);
  if (!value) return std::string(fallback);
  if (const std::string* s = as_text(*value)) return *s;
  fail(key, "a text");
  return std::string(fallback);
}

}  // namespace qsf::convert
