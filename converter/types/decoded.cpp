#include "converter/types/decoded.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

/// Decodes whole numbers. Returns false if a float cannot represent one.
template <class T>
bool whole(const std::byte* at, float* out) {
  const T value = load_le<T>(at);
  *out = static_cast<float>(value);
  constexpr T kHalf = std::numeric_limits<T>::max() / 2 + 1;
  constexpr float kBeyond = 2.0f * static_cast<float>(kHalf);
  return *out < kBeyond && static_cast<T>(*out) == value;
}

/// Decodes a double, rounded as a conversion to float32 rounds.
bool float64(const std::byte* at, float* out) {
  *out = static_cast<float>(load_le<double>(at));
  return true;
}

enum class Special : std::uint8_t { ieee, all_ones, minus_zero };  // the codes that are not numbers

/// Decodes a sign, 7 - mantissa bits of exponent, and the mantissa.
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

/// Decodes a power of two.
bool exponent8(const std::byte* at, float* out) {
  const int exponent = std::to_integer<int>(*at);
  *out = exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, exponent - 127);
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
};

}  // namespace

std::span<const StoredType> stored_types() { return kTypes; }

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
                LoadedTensor& out) {
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
  RowsOf::Runs runs = same_runs(stored);
  auto read = [&type, stored = std::move(stored), row_size, cols, name = out.name](std::uint32_t first, std::uint32_t n,
                                                                                   std::span<std::byte> to) -> Status {
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
  out.rows_of = {std::move(read), std::move(runs)};
}

}  // namespace qsf::convert
