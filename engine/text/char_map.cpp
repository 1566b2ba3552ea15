#include "text/char_map.h"

#include <algorithm>
#include <array>

#include "qsf/base/bytes.h"
#include "qsf/base/utf8.h"

namespace qsf {
namespace {

constexpr std::size_t kUnit = sizeof(std::uint32_t);
constexpr std::size_t kMaxText = 1024;  // bytes

/// The parts of a unit: https://github.com/s-yata/darts-clone.
constexpr std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200u) >> 6); }
constexpr std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000ffu; }
constexpr bool closes_key(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
constexpr std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7fffffffu; }

std::uint32_t trie_bytes(std::string_view map) {
  return load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(map.data()));
}

}  // namespace

Status CharMap::check(std::string_view map) {
  const bool sized = map.size() > kUnit && trie_bytes(map) >= kUnit && trie_bytes(map) % kUnit == 0 &&
                     trie_bytes(map) < map.size() - kUnit;
  const std::string_view texts = sized ? map.substr(kUnit + trie_bytes(map)) : std::string_view();
  std::size_t longest = 0;
  for (std::size_t at = 0; at < texts.size();) {
    const std::size_t end = std::min(texts.find('\0', at), texts.size());
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  if (sized && texts.back() == '\0' && longest <= kMaxText && utf8::valid_prefix(texts) == texts.size()) return {};
  return make_error(ErrorCode::bad_tokenizer, "tokenizer: the character map of {} bytes is damaged", map.size());
}

CharMap::CharMap(std::string_view map)
    : trie_(map.substr(kUnit, trie_bytes(map))), texts_(map.substr(kUnit + trie_bytes(map))) {}

/// Returns a unit of the trie; outside of it 0, which has no successors.
std::uint32_t CharMap::unit(std::uint32_t at) const {
  if (at >= trie_.size() / kUnit) return 0;
  return load_le<std::uint32_t>(reinterpret_cast<const std::byte*>(trie_.data()) + kUnit * at);
}

CharMap::Walk CharMap::begin() const { return {offset_of(unit(0)), false, {}}; }

bool CharMap::step(Walk& walk, std::uint8_t byte) const {
  walk.node ^= byte;
  const std::uint32_t here = unit(walk.node);
  if (byte == 0 || label_of(here) != byte) return false;
  walk.node ^= offset_of(here);
  walk.found = closes_key(here);
  if (!walk.found) return true;
  const std::uint32_t at = value_of(unit(walk.node));
  walk.found = at < texts_.size() && (static_cast<std::uint8_t>(texts_[at]) & 0xC0u) != 0x80;
  if (walk.found) walk.text = texts_.substr(at, texts_.find('\0', at) - at);
  return true;
}

bool CharMap::on(Walk& walk, char32_t c) const {
  std::array<char, 4> bytes{};
  const std::size_t n = utf8::encode(c, bytes.data());
  for (std::size_t i = 0; i < n; ++i) {
    if (!step(walk, static_cast<std::uint8_t>(bytes[i]))) return false;
  }
  return true;
}

}  // namespace qsf
