#include <cmath>

#include "qsf/base/bytes.h"
#include "qsf/base/utf8.h"
#include "qsf/file/layout.h"
#include "qsf/file/reader.h"

namespace qsf {
namespace {

Error cut_off(std::string_view key) {
  return make_error(ErrorCode::bad_section, "section META ends within the entry after \"{}\"", key);
}

/// Whether the text is printable ASCII without spaces, so that it can be shown and typed.
bool is_key(std::string_view key) {
  if (key.empty()) return false;
  for (const char c : key) {
    if (c <= ' ' || c >= 0x7f) return false;
  }
  return true;
}

}  // namespace

Result<MetaReader> MetaReader::open(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  MetaReader meta;
  meta.n_left_ = reader.read<std::uint32_t>();
  if (reader.bad())
    return make_error(ErrorCode::bad_section, "section META has {} bytes, not even a count", bytes.size());
  meta.left_ = bytes.subspan(reader.at());
  return meta;
}

Result<bool> MetaReader::next(MetaValue& out) {
  if (n_left_ == 0) {
    if (left_.empty()) return false;
    return make_error(ErrorCode::bad_section, "section META has {} bytes after its last entry", left_.size());
  }
  ByteReader reader(left_);
  MetaValue value;
  value.key = reader.text(reader.read<std::uint16_t>());
  value.type = reader.read<MetaType>();
  if (reader.bad()) return cut_off(last_key_);
  if (!is_key(value.key)) {
    return make_error(ErrorCode::bad_section, "section META: the key after \"{}\" is not printable ASCII", last_key_);
  }
  if (value.key <= last_key_) {
    return make_error(ErrorCode::bad_section, "section META: key \"{}\" is not in ascending order", value.key);
  }
  switch (value.type) {
    case MetaType::u32:
      value.u32 = reader.read<std::uint32_t>();
      break;
    case MetaType::f32:
      value.f32 = reader.read<float>();
      if (!std::isfinite(value.f32)) {
        return make_error(ErrorCode::bad_section, "section META: {} is not a finite number", value.key);
      }
      break;
    case MetaType::long_text:
    case MetaType::text: {
      const bool is_long = value.type == MetaType::long_text;
      const std::uint32_t size = is_long ? reader.read<std::uint32_t>() : reader.read<std::uint16_t>();
      if (size > kMaxMetaText) {
        return make_error(ErrorCode::bad_section, "section META: {} has {} bytes; {} are possible", value.key, size,
                          kMaxMetaText);
      }
      value.type = MetaType::text;
      value.text = reader.text(size);
      if (!utf8::is_valid(value.text)) {
        return make_error(ErrorCode::bad_section, "section META: {} is not valid UTF-8", value.key);
      }
      break;
    }
    default:
      return make_error(ErrorCode::unsupported, "section META: {} has type {}, which is not known", value.key,
                        value.type);
  }
  if (reader.bad()) return cut_off(last_key_);
  last_key_ = value.key;
  left_ = left_.subspan(reader.at());
  --n_left_;
  out = value;
  return true;
}

}  // namespace qsf
