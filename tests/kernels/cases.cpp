#include "kernels/cases.h"

#ifdef _WIN32
#include <windows.h>
#elif !defined(__EMSCRIPTEN__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>

#include "qsf/base/half.h"

namespace qsf::test {

std::vector<float> unit_values(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = random.symmetric();
  return values;
}

std::vector<float> make_values(Values kind, std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) {
    switch (kind) {
      case Values::zero:
        v = random.below(2) != 0 ? 0.0f : -0.0f;
        break;
      case Values::largest:  // all codes +-127, of magnitudes whose products stay finite
        v = random.below(2) != 0 ? 1e15f : -1e15f;
        break;
      case Values::subnormal:
        v = random.symmetric() * 0x1p-126f;
        break;
      case Values::random:  // over 2^-8 .. 2^8, so that groups differ in scale
        v = random.symmetric() * static_cast<float>(1u << random.below(17)) * 0x1p-8f;
        break;
    }
  }
  return values;
}

void set_scale(const Format& f, f16 scale, std::byte* block) {
  if (f.scale.type == Scale::f16) std::memcpy(block + f.scale.at, &scale, 2);
  for (unsigned i = 0; f.grid == Grid::iq1_m && i < 4; ++i) {  // the upper halves of four bytes
    std::byte& byte = block[49 + 2 * i];
    byte = (byte & std::byte{15}) | static_cast<std::byte>((scale >> 4 * i & 15) << 4);
  }
}

Weights make_weights(const Format& f, std::uint32_t rows, std::uint32_t cols, std::uint64_t seed) {
  Random random(seed);
  Weights w{&f, rows, cols, {}, {}};
  const std::size_t row_size = row_bytes(f, cols);
  w.row_major.resize(rows * row_size);
  for (std::byte& byte : w.row_major) byte = static_cast<std::byte>(random.next());
  for (std::size_t at = 0; at < w.row_major.size(); at += f.block_bytes) {
    std::byte* const block = w.row_major.data() + at;
    const float value = random.symmetric();
    const f16 half = f32_to_f16(value);
    if (f.quantized()) {
      const f16 minimum = f32_to_f16(8.0f * random.symmetric());
      set_scale(f, half, block);
      if (f.scale.type == Scale::f32) std::memcpy(block + f.scale.at, &value, 4);
      if (f.scale.type == Scale::exponent) {  // the least, which are denormal, too
        block[f.scale.at] = static_cast<std::byte>(random.below(4) == 0 ? random.below(3) : 120 + random.below(16));
      }
      if (f.has_min()) std::memcpy(block + f.minimum.at, &minimum, 2);
    } else if (f.id == FormatId::f32) {
      std::memcpy(block, &value, 4);
    } else {
      const std::uint16_t bits = f.id == FormatId::f16 ? half : f32_to_bf16(value);
      std::memcpy(block, &bits, 2);
    }
  }
  if (!f.quantized()) {
    w.kernel = w.row_major;
    return w;
  }
  const std::size_t strip_size = kTileRows * row_size;
  w.kernel.resize(tensor_bytes(f, Layout::tiles, rows, cols));
  for (std::uint32_t row = 0; row < rows; row += kTileRows) {
    const std::uint32_t n = std::min(rows - row, kTileRows);
    tile_strip(f, std::span(w.row_major).subspan(row * row_size, n * row_size), n, cols,
               std::span(w.kernel).subspan(row / kTileRows * strip_size, strip_size));
  }
  return w;
}

Columns::Columns(const Kernels& kernels, std::span<const float> x, std::uint32_t x_stride, std::uint32_t cols,
                 std::uint32_t n, ScaleOf scale_of)
    : n_(n) {
  const std::uint32_t padded = padded_cols(cols);
  codes_.assign(static_cast<std::size_t>(n) * padded, 99);
  d_.assign(static_cast<std::size_t>(n) * padded / kGroup, -1.0f);
  sums_.assign(static_cast<std::size_t>(n) * padded / kGroup, -1);
  half_sums_.assign(static_cast<std::size_t>(n) * padded / kGroup * 2, -1);
  view_ = {codes_.data(), d_.data(), sums_.data(), half_sums_.data(), padded};
  kernels.quantize_columns(x.data(), x_stride, cols, n, scale_of, view_);
}

std::vector<float> multiply(const Kernels& kernels, const Weights& w, std::span<const float> x, std::uint32_t n) {
  const Columns columns(kernels, x, w.cols, w.cols, n);
  std::vector<float> y(static_cast<std::size_t>(n) * w.rows, -77.0f);
  const auto format = static_cast<std::size_t>(format_index(w.format->id));
  kernels.matmul[format]({w.kernel.data(), w.rows, w.cols, x.data(), w.cols, columns.view(), n, y.data(), w.rows});
  return y;
}

#if !defined(__EMSCRIPTEN__) && !defined(_WIN32)
namespace {
std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
std::size_t in_pages(std::size_t size) { return (size + page_size() - 1) / page_size() * page_size(); }
}  // namespace

Guarded::Guarded(std::size_t size) : size_(size) {
  const std::size_t inside = in_pages(size);
  void* const at = mmap(nullptr, inside + 2 * page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(at);
  if (inside != 0 && mprotect(base_ + page_size(), inside, PROT_READ | PROT_WRITE) != 0) std::abort();
  data_ = base_ + page_size() + inside - size;
}
Guarded::~Guarded() { munmap(base_, in_pages(size_) + 2 * page_size()); }
#elif defined(_WIN32)
Guarded::Guarded(std::size_t size) : size_(size) {
  constexpr std::size_t kPage = 4096;
  const std::size_t inside = (size + kPage - 1) / kPage * kPage;
  base_ = static_cast<std::byte*>(VirtualAlloc(nullptr, inside + 2 * kPage, MEM_RESERVE, PAGE_NOACCESS));
  if (base_ == nullptr) std::abort();
  if (inside != 0 && VirtualAlloc(base_ + kPage, inside, MEM_COMMIT, PAGE_READWRITE) == nullptr) std::abort();
  data_ = base_ + kPage + inside - size;
}
Guarded::~Guarded() { VirtualFree(base_, 0, MEM_RELEASE); }
#else
namespace {
constexpr std::size_t kFence = 256;
constexpr std::byte kPaint{0xa5};
}  // namespace

Guarded::Guarded(std::size_t size) : size_(size), base_(static_cast<std::byte*>(std::malloc(size + 2 * kFence))) {
  data_ = base_ + kFence;
  std::fill_n(base_, size + 2 * kFence, kPaint);
}
Guarded::~Guarded() {
  for (std::size_t i = 0; i < kFence; ++i) {
    if (base_[i] != kPaint || data_[size_ + i] != kPaint) std::abort();
  }
  std::free(base_);
}
#endif

}  // namespace qsf::test
