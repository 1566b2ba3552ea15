// Character maps as SentencePiece writes them, from keys and texts.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace qsf::test {

/// Keys set one after the other; no two places may meet.
struct Trie {
  explicit Trie(std::size_t n_units = 2048) : units(n_units) {}

  std::vector<std::uint32_t> units;
  std::string texts;

  void add(const std::vector<std::pair<std::string, std::string>>& keys) {
    // Node n's children lie at n ^ byte; a node's offset is chosen so that n = place ^ offset is a multiple of 256.
    std::vector<std::string> prefixes{""};
    units[0] = 256u << 10;  // the root's node is 256
    const auto node_of = [&](const std::string& prefix) {
      std::uint32_t n = 1;
      for (; prefixes[n - 1] != prefix; ++n) {
      }
      return n * 256;
    };
    for (const auto& [key, text] : keys) {
      for (std::size_t i = 1; i <= key.size(); ++i) {
        const std::string prefix = key.substr(0, i);
        const std::uint32_t parent = node_of(key.substr(0, i - 1));
        const std::uint32_t place = parent ^ static_cast<std::uint8_t>(key[i - 1]);
        bool known = false;
        for (const std::string& each : prefixes) known = known || each == prefix;
        if (!known) {
          prefixes.push_back(prefix);
          units[place] = static_cast<std::uint8_t>(key[i - 1]) | (place ^ node_of(prefix)) << 10;
        }
        if (i < key.size()) continue;
        units[place] |= 1u << 8;
        units[node_of(prefix)] = 0x80000000u | static_cast<std::uint32_t>(texts.size());
        texts += text + '\0';
      }
    }
  }
  std::string map() const {
    std::string out(sizeof(std::uint32_t) * (1 + units.size()), '\0');
    const auto size = static_cast<std::uint32_t>(sizeof(std::uint32_t) * units.size());
    std::memcpy(out.data(), &size, sizeof size);
    std::memcpy(out.data() + sizeof size, units.data(), size);
    return out + texts;
  }
};

}  // namespace qsf::test
