#include "converter/decoded.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "converter/iq.h"
#include "qsf/base/bytes.h"
#include "qsf/base/half.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

/// Whole numbers that a float holds.
template <class T>
bool whole(const std::byte* at, float* out) {
  const T value = load_le<T>(at);
  *out = static_cast<float>(value);
  constexpr T kHalf = std::numeric_limits<T>::max() / 2 + 1;
  constexpr float kBeyond = 2.0f * static_cast<float>(kHalf);
  return *out < kBeyond && static_cast<T>(*out) == value;
}

/// Rounded as loading in float32 does it.
bool float64(const std::byte* at, float* out) {
  *out = static_cast<float>(load_le<double>(at));
  return true;
}

enum class Special : std::uint8_t { ieee, all_ones, minus_zero };  // which codes are no numbers

/// A sign, 7 - mantissa bits of exponent, the mantissa.
template <int mantissa, int bias, Special special>
bool float8(const std::byte* at, float* out) {
  constexpr unsigned kMantissa = (1u << mantissa) - 1, kExponent = 0x7f >> mantissa;
  const auto code = std::to_integer<unsigned>(*at);
  const unsigned exponent = code >> mantissa & kExponent, fraction = code & kMantissa;
  const bool negative = (code & 0x80) != 0;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - bias - mantissa)
                              : std::ldexp(static_cast<float>(kMantissa + 1 + fraction),
                                           static_cast<int>(exponent) - bias - mantissa);
  if (special == Special::ieee && exponent == kExponent) {
    value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  if ((special == Special::all_ones && (code & 0x7f) == 0x7f) || (special == Special::minus_zero && code == 0x80)) {
    value = std::numeric_limits<float>::quiet_NaN();
  }
  *out = negative ? -value : value;
  return true;
}

/// A power of two.
bool exponent8(const std::byte* at, float* out) {
  const int exponent = std::to_integer<int>(*at);
  *out = exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, exponent - 127);
  return true;
}

/// kBytes bytes of 4-bit codes: the low halves first.
template <std::size_t kBytes, class Value>
void nibbles(const std::byte* codes, float* out, Value value) {
  for (std::size_t i = 0; i < kBytes; ++i) {
    const auto byte = std::to_integer<unsigned>(codes[i]);
    out[i] = value(byte & 15);
    out[i + kBytes] = value(byte >> 4);
  }
}

/// Four unsigned 8-bit floats, then 16 codes of mxfp4's levels for each. GGML takes the code for no number as 0.
bool nvfp4(const std::byte* block, float* out) {
  constexpr unsigned kScales = 4, kBytes = 8, kNone = 0x7f;
  const Format& levels = *find_format(ggml_type(39));
  for (unsigned i = 0; i < kScales; ++i) {
    const std::byte code = block[i] & std::byte{0x7f};
    float scale = 0;
    if (std::to_integer<unsigned>(code) != kNone) float8<3, 7, Special::all_ones>(&code, &scale);
    nibbles<kBytes>(block + kScales + kBytes * i, out + 2 * kBytes * i, [&](unsigned at) {
      return 0.5f * scale * static_cast<float>(level(levels, static_cast<std::uint8_t>(at)) - levels.offset);
    });
  }
  return true;
}

constexpr std::array kTypes{
    StoredType{"F32", 1, 4, FormatId::f32},
    StoredType{"F16", 1, 2, FormatId::f16},
    StoredType{"BF16", 1, 2, FormatId::bf16},
    StoredType{"F64", 1, 8, FormatId::inherit, float64},
    StoredType{"F8_E4M3", 1, 1, FormatId::inherit, float8<3, 7, Special::all_ones>},
    StoredType{"F8_E5M2", 1, 1, FormatId::inherit, float8<2, 15, Special::ieee>},
    StoredType{"F8_E4M3FNUZ", 1, 1, FormatId::inherit, float8<3, 8, Special::minus_zero>},
    StoredType{"F8_E5M2FNUZ", 1, 1, FormatId::inherit, float8<2, 16, Special::minus_zero>},
    StoredType{"F8_E8M0", 1, 1, FormatId::inherit, exponent8},
    StoredType{"BOOL", 1, 1, FormatId::inherit, whole<std::uint8_t>},
    StoredType{"U8", 1, 1, FormatId::inherit, whole<std::uint8_t>},
    StoredType{"I8", 1, 1, FormatId::inherit, whole<std::int8_t>},
    StoredType{"U16", 1, 2, FormatId::inherit, whole<std::uint16_t>},
    StoredType{"I16", 1, 2, FormatId::inherit, whole<std::int16_t>},
    StoredType{"U32", 1, 4, FormatId::inherit, whole<std::uint32_t>},
    StoredType{"I32", 1, 4, FormatId::inherit, whole<std::int32_t>},
    StoredType{"U64", 1, 8, FormatId::inherit, whole<std::uint64_t>},
    StoredType{"I64", 1, 8, FormatId::inherit, whole<std::int64_t>},
    StoredType{"NVFP4", 64, 36, FormatId::inherit, nvfp4},
    StoredType{"IQ1_S", 256, 50, FormatId::inherit, iq1_s},
    StoredType{"IQ1_M", 256, 56, FormatId::inherit, iq1_m},
    StoredType{"IQ2_XXS", 256, 66, FormatId::inherit, iq2_xxs},
    StoredType{"IQ2_XS", 256, 74, FormatId::inherit, iq2_xs},
    StoredType{"IQ2_S", 256, 82, FormatId::inherit, iq2_s},
    StoredType{"IQ3_XXS", 256, 98, FormatId::inherit, iq3_xxs},
    StoredType{"IQ3_S", 256, 110, FormatId::inherit, iq3_s},
};

}  // namespace

const StoredType* find_stored_type(std::string_view name) {
  const auto* const at = std::ranges::find(kTypes, name, &StoredType::name);
  return at == kTypes.end() ? nullptr : &*at;
}

std::optional<std::uint64_t> bytes_of(std::span<const std::uint64_t> shape, std::uint64_t element) {
  std::uint64_t product = element;
  for (const std::uint64_t extent : shape) {
    if (extent != 0 && product > (std::uint64_t{1} << 63) / extent) return {};
    product *= extent;
  }
  return product;
}

void place_rows(const StoredType& type, const Input& input, std::uint64_t begin, std::uint64_t size,
                SourceTensor& out) {
  const std::uint64_t cols = out.shape.empty() ? 1 : out.shape.back();
  const std::uint64_t row_size = cols / type.block * type.block_bytes;
  RowsOf stored = rows_in(input, begin, size, row_size);
  if (type.format != FormatId::inherit) {
    out.format = type.format;
    out.rows_of = std::move(stored);
    return;
  }
  out.format = FormatId::f32;
  out.stored_rows = stored;
  out.rows_of = [&type, stored = std::move(stored), row_size, cols, name = out.name](
                    std::uint32_t first, std::uint32_t n, std::span<std::byte> to) -> Status {
    if (to.size() != n * cols * sizeof(float)) {
      return make_error(ErrorCode::internal, "{} rows of {:.80} do not fit in {} bytes", n, name, to.size());
    }
    std::vector<std::byte> raw(n * row_size);
    QSF_TRY(stored(first, n, raw));
    std::vector<float> weights(type.block);
    std::byte* at = to.data();
    for (std::size_t block = 0; block < raw.size(); block += type.block_bytes, at += type.block * sizeof(float)) {
      if (!type.decode(raw.data() + block, weights.data())) {
        return make_error(ErrorCode::bad_input, "tensor {:.100} holds a {} that 32-bit floats cannot hold", name,
                          type.name);
      }
      std::memcpy(at, weights.data(), type.block * sizeof(float));
    }
    return {};
  };
}

}  // namespace qsf::convert
