// Bytes that grow, for what the writer puts into sections.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "qsf/base/bytes.h"
#include "qsf/base/result.h"
#include "qsf/file/writer.h"

namespace qsf {

template <class T>
void append(std::vector<std::byte>& to, T value) {
  to.resize(to.size() + sizeof value);
  store_le(to.data() + to.size() - sizeof value, value);
}
inline void append(std::vector<std::byte>& to, std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  to.insert(to.end(), begin, begin + text.size());
}

/// The META section of these entries, in any order, as MetaReader takes it.
Result<std::vector<std::byte>> encode_meta(std::span<const MetaEntry> meta);

}  // namespace qsf
