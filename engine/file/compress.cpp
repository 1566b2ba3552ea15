#define LZ4_STATIC_LINKING_ONLY  // for LZ4_DECOMPRESS_INPLACE_MARGIN
#include <lz4.h>

#include <cstring>

#include "qsf/file/layout.h"
#include "qsf/file/reader.h"

namespace qsf {

Status decompress(Compression compression, std::span<const std::byte> stored, std::span<std::byte> raw) {
  if (stored.size() > kMaxSegmentRaw || raw.size() > kMaxSegmentRaw) {
    return make_error(ErrorCode::bad_compression, "a block of {} bytes for {} is larger than {}", stored.size(),
                      raw.size(), kMaxSegmentRaw);
  }
  switch (compression) {
    case Compression::none:
      if (stored.size() != raw.size()) {
        return make_error(ErrorCode::bad_compression, "an uncompressed block has {} bytes, not {}", stored.size(),
                          raw.size());
      }
      if (!raw.empty() && raw.data() != stored.data()) std::memmove(raw.data(), stored.data(), raw.size());
      return {};
    case Compression::lz4:
    case Compression::lz4hc: {
      const int made =
          LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(raw.data()),
                              static_cast<int>(stored.size()), static_cast<int>(raw.size()));
      if (made < 0)
        return make_error(ErrorCode::bad_compression, "a block of {} bytes is not valid LZ4", stored.size());
      if (static_cast<std::size_t>(made) != raw.size()) {
        return make_error(ErrorCode::bad_compression, "an LZ4 block holds {} bytes, not {}", made, raw.size());
      }
      return {};
    }
    case Compression::zstd:
      return make_error(ErrorCode::unsupported, "this build does not read segments compressed with ZSTD");
  }
  return make_error(ErrorCode::unsupported, "compression type {} is not known", compression);
}

std::uint64_t in_place_margin(Compression compression, std::uint32_t stored_size) {
  return compression == Compression::none ? 0 : LZ4_DECOMPRESS_INPLACE_MARGIN(std::uint64_t{stored_size});
}

}  // namespace qsf
