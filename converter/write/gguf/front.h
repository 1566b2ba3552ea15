// The bytes before a GGUF file's weights: keys, values and the list of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/types/gguf_keys.h"

namespace qsf::convert {

/// The alignment of a tensor's bytes, counted from the end of the front.
inline constexpr std::uint64_t kGgufAlignment = 32;

class GgufFront {
 public:
  bool has(const std::string& key) const { return keys_.contains(key); }

  void number(const std::string& key, std::uint32_t value) { scalar(key, GgufType::u32, value); }
  void number(const std::string& key, float value) { scalar(key, GgufType::f32, value); }
  void flag(const std::string& key, bool value) { scalar(key, GgufType::boolean, std::uint8_t{value}); }
  void text(const std::string& key, std::string_view value);
  void texts(const std::string& key, std::span<const std::string> values);
  void numbers(const std::string& key, std::span<const std::int32_t> values) { list(key, GgufType::i32, values); }
  void numbers(const std::string& key, std::span<const float> values) { list(key, GgufType::f32, values); }
  void bytes(const std::string& key, std::string_view values);

  /// `shape` is outermost first. `offset` must be a multiple of kGgufAlignment.
  void tensor(std::string_view name, std::span<const std::uint64_t> shape, std::uint32_t type, std::uint64_t offset);

  /// Returns the file's first bytes, up to the tensors' bytes.
  std::vector<std::byte> whole() const;

 private:
  template <class T>
  void scalar(const std::string& key, GgufType type, T value);
  template <class T>
  void list(const std::string& key, GgufType element, std::span<const T> values);
  void begin(const std::string& key, GgufType type);

  std::set<std::string> keys_;
  std::vector<std::byte> values_, tensors_;
  std::uint64_t n_tensors_ = 0;
};

}  // namespace qsf::convert
