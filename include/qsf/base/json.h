// A JSON reader (RFC 8259) whose values are in memory that the caller gives. Nothing of a text is trusted: depth, size
// and memory are bounded, names that occur twice in an object are refused, and so are lone surrogates.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/base/store.h"

namespace qsf::json {

/// The deepest nesting of arrays and objects. Readers of values may recurse this deep.
inline constexpr std::uint32_t kMaxDepth = 128;

enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

struct Value {
  Kind kind = Kind::null;
  bool truth = false;          // of a boolean
  std::uint32_t count = 0;     // members or elements
  std::uint32_t first = 0;     // the first of them; 0: none
  std::uint32_t next = 0;      // the next of the same parent; 0: none
  std::string_view text = {};  // of a string: its UTF-8 without escapes; of a number: as written
  std::string_view name = {};  // of a member
};

/// The values of a text.
class Document {
 public:
  /// Reads `text`, which must outlive the document. Fails with bad_input, or with out_of_memory if `store` is full.
  static Result<Document> read(std::string_view text, Store& store);

  static constexpr std::uint32_t kRoot = 1;
  const Value& operator[](std::uint32_t id) const { return values_[id]; }
  /// Returns the member of an object with a name, or 0.
  std::uint32_t member(std::uint32_t object, std::string_view name) const;
  std::uint32_t size() const { return values_.size(); }

 private:
  friend class Reader;
  Table<Value> values_;
};

/// Gives a byte of a string in JSON, escaped if it must be, to `put`.
template <class Put>
void write_byte(char c, Put& put) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (byte < ' ') {
    for (const char escape : {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]}) put(escape);
    return;
  }
  if (c == '"' || c == '\\') put('\\');
  put(c);
}

/// Gives the bytes of a string in JSON, with its quotes and escapes, to `put`.
template <class Put>
void write_text(std::string_view text, Put put) {
  put('"');
  for (const char c : text) write_byte(c, put);
  put('"');
}

/// Whether two values of one document are equal: numbers by their value, objects without regard to order.
bool equal(const Document& document, std::uint32_t a, std::uint32_t b);

/// A decimal number: digits without zeros at either end, and the power of ten of the point after `point` digits. Zero
/// has no digits.
struct Number {
  static constexpr std::uint32_t kMaxDigits = 60;
  char digits[kMaxDigits] = {};  // '0' to '9'
  std::uint32_t count = 0;
  std::int32_t point = 0;  // the value is 0.d1d2d3... times 10^point
  bool negative = false;   // false for zero

  /// Reads a number's text. Returns nothing if it has too many digits or an exponent above 400.
  static std::optional<Number> read(std::string_view text);
  bool operator==(const Number& other) const;
  bool is_integer() const { return point >= static_cast<std::int32_t>(count); }
};

}  // namespace qsf::json
