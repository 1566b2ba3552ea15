// Byte buffers that grow, for the sections that the writer encodes.
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

/// Returns the META section of entries in any order. Fails with bad_argument if a key or text is too long, or as
/// MetaReader does.
Result<std::vector<std::byte>> encode_meta(std::span<const MetaEntry> meta);

}  // namespace qsf
