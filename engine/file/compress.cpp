#define LZ4_STATIC_LINKING_ONLY  // for LZ4_DECOMPRESS_INPLACE_MARGIN
#include <lz4.h>
#include <lz4hc.h>
#ifdef QSF_HAVE_ZSTD
#define ZSTD_STATIC_LINKING_ONLY  // for ZSTD_initStaticDCtx, which works in the caller's memory
#include <zstd.h>
#endif

#include <algorithm>
#include <cstring>

#include "qsf/base/try.h"
#include "qsf/file/layout.h"
#include "qsf/file/reader.h"
#include "qsf/file/writer.h"

namespace qsf {
namespace {

Error made_other(const char* kind, std::uint64_t made, std::span<std::byte> raw) {
  return make_error(ErrorCode::bad_compression, "{} holds {} bytes, not {}", kind, made, raw.size());
}

#ifdef QSF_HAVE_ZSTD

Error not_zstd(std::span<const std::byte> stored) {
  return make_error(ErrorCode::bad_compression, "a block of {} bytes is not a valid ZSTD frame", stored.size());
}

constexpr int kZstdLevel = 3;  // weights have no long matches, so the entropy coder gives all of the gain

/// Checks that `stored` is exactly one frame of raw.size() bytes that can be decompressed in place: if the stored bytes
/// end `margin` bytes after the last raw byte, no block is written over bytes that are still to be read.
Status check_frame(std::span<const std::byte> stored, std::span<std::byte> raw, std::uint64_t margin) {
  ZSTD_frameHeader frame{};
  if (ZSTD_getFrameHeader(&frame, stored.data(), stored.size()) != 0 || frame.frameType != ZSTD_frame ||
      frame.dictID != 0) {
    return not_zstd(stored);
  }
  if (frame.frameContentSize != raw.size()) return made_other("a ZSTD frame", frame.frameContentSize, raw);
  if (frame.blockSizeMax > kZstdBlock) {
    return make_error(ErrorCode::bad_compression, "a ZSTD frame has blocks of {} bytes, {} is the most",
                      frame.blockSizeMax, kZstdBlock);
  }
  const std::uint64_t end = raw.size() + margin;  // end of the stored bytes, counted from the first raw byte
  std::uint64_t at = frame.headerSize, made = 0;
  for (bool last = false; !last;) {
    constexpr std::uint64_t kBlockHeader = 3;
    if (stored.size() - at < kBlockHeader) return not_zstd(stored);
    std::uint32_t head = 0;
    for (std::uint32_t i = 0; i < kBlockHeader; ++i) head |= std::to_integer<std::uint32_t>(stored[at + i]) << 8 * i;
    at += kBlockHeader;
    last = (head & 1) != 0;
    const std::uint32_t type = head >> 1 & 3, size = head >> 3;
    constexpr std::uint32_t kRepeated = 1, kCompressed = 2;
    if (size > frame.blockSizeMax) return not_zstd(stored);
    made += type == kCompressed ? frame.blockSizeMax : size;
    if (std::min<std::uint64_t>(made, raw.size()) > end - (stored.size() - at)) {
      return make_error(ErrorCode::bad_compression, "a ZSTD frame of {} bytes cannot be decompressed in place",
                        stored.size());
    }
    const std::uint32_t held = type == kRepeated ? 1 : size;
    if (stored.size() - at < held) return not_zstd(stored);
    at += held;
  }
  return at + (frame.checksumFlag != 0 ? 4 : 0) == stored.size() ? Status() : not_zstd(stored);
}

Status decompress_zstd(std::span<const std::byte> stored, std::span<std::byte> raw, std::span<std::byte> workspace) {
  QSF_TRY(check_frame(stored, raw,
                      in_place_margin(Compression::zstd, static_cast<std::uint32_t>(raw.size()),
                                      static_cast<std::uint32_t>(stored.size()))));
  ZSTD_DCtx* const context = ZSTD_initStaticDCtx(workspace.data(), workspace.size());
  if (context == nullptr) {
    return make_error(ErrorCode::internal, "ZSTD wants {} bytes to work in and has {}",
                      decompress_workspace(Compression::zstd), workspace.size());
  }
  const std::size_t made = ZSTD_decompressDCtx(context, raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(made) != 0) return not_zstd(stored);
  return made == raw.size() ? Status() : made_other("a ZSTD frame", made, raw);
}

std::uint32_t compress_zstd(std::span<const std::byte> raw, std::span<std::byte> out) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  if (context == nullptr) return 0;
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kZstdLevel);
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, kZstdWindowLog);
  const std::size_t made = ZSTD_compress2(context, out.data(), out.size() - 1, raw.data(), raw.size());
  ZSTD_freeCCtx(context);
  return ZSTD_isError(made) != 0 ? 0 : static_cast<std::uint32_t>(made);
}

#else

Status decompress_zstd(std::span<const std::byte>, std::span<std::byte>, std::span<std::byte>) {
  return make_error(ErrorCode::unsupported, "this build does not read segments compressed with ZSTD");
}

std::uint32_t compress_zstd(std::span<const std::byte>, std::span<std::byte>) { return 0; }

#endif

}  // namespace

bool can_decompress(Compression compression) {
#ifdef QSF_HAVE_ZSTD
  return compression <= Compression::zstd;
#else
  return compression < Compression::zstd;
#endif
}

std::uint64_t decompress_workspace(Compression compression) {
#ifdef QSF_HAVE_ZSTD
  if (compression == Compression::zstd) return ZSTD_estimateDCtxSize();
#endif
  (void)compression;
  return 0;
}

Status decompress(Compression compression, std::span<const std::byte> stored, std::span<std::byte> raw,
                  std::span<std::byte> workspace) {
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
      if (static_cast<std::size_t>(made) == raw.size()) return {};
      return made_other("an LZ4 block", static_cast<std::uint64_t>(made), raw);
    }
    case Compression::zstd:
      return decompress_zstd(stored, raw, workspace);
  }
  return make_error(ErrorCode::unsupported, "compression type {} is not known", compression);
}

std::uint64_t in_place_margin(Compression compression, std::uint32_t raw_size, std::uint32_t stored_size) {
  if (compression == Compression::none) return 0;
  if (compression != Compression::zstd) return LZ4_DECOMPRESS_INPLACE_MARGIN(std::uint64_t{stored_size});
  // One block, the frame's header and checksum, and the header of each block.
  return kZstdBlock + 32 + 3 * (std::uint64_t{raw_size} / kZstdBlock + 1);
}

std::uint32_t compress(Compression compression, std::span<const std::byte> raw, std::span<std::byte> out) {
  if (raw.empty() || out.size() < raw.size() || raw.size() > kMaxSegmentRaw) return 0;
  if (compression == Compression::zstd) return compress_zstd(raw, out);
  const auto* from = reinterpret_cast<const char*>(raw.data());
  auto* to = reinterpret_cast<char*>(out.data());
  const int size = static_cast<int>(raw.size());
  int made = 0;
  if (compression == Compression::lz4) made = LZ4_compress_default(from, to, size, size - 1);
  if (compression == Compression::lz4hc) made = LZ4_compress_HC(from, to, size, size - 1, LZ4HC_CLEVEL_DEFAULT);
  return static_cast<std::uint32_t>(std::max(made, 0));
}

}  // namespace qsf
