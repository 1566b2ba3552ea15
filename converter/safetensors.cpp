#include "converter/safetensors.h"

#include <array>
#include <string>

#include "converter/json.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit

struct TypeName {
  std::string_view name;
  FormatId format;
};
constexpr std::array kTypes{TypeName{"F32", FormatId::f32}, TypeName{"F16", FormatId::f16},
                            TypeName{"BF16", FormatId::bf16}};

FormatId format_of(std::string_view type) {
  for (const TypeName& line : kTypes) {
    if (line.name == type) return line.format;
  }
  return FormatId::inherit;
}

/// The product of shape and element size; empty when it passes 2^63.
std::optional<std::uint64_t> bytes_of(std::span<const std::uint64_t> shape, std::uint64_t element) {
  std::uint64_t product = element;
  for (const std::uint64_t extent : shape) {
    if (extent != 0 && product > (std::uint64_t{1} << 63) / extent) return {};
    product *= extent;
  }
  return product;
}

struct Reader {
  std::string_view file;
  std::span<const std::byte> data;  // after the header

  Error fail(std::string_view tensor, const char* what) const {
    return make_error(ErrorCode::bad_input, "{}: tensor {:.80}: {}", file, tensor, what);
  }

  Result<SourceTensor> tensor(const std::string& name, const Json& entry, ByteRange& range) const {
    const Json* type = find(entry, "dtype");
    const Json* shape = find(entry, "shape");
    const Json* offsets = find(entry, "data_offsets");
    if (!type || !as_text(*type)) return fail(name, "\"dtype\" is missing or not a text");
    if (!shape || !shape->is_array()) return fail(name, "\"shape\" is missing or not a list");
    if (!offsets || !offsets->is_array() || offsets->size() != 2) {
      return fail(name, "\"data_offsets\" is missing or not a pair");
    }
    SourceTensor out;
    out.name = name;
    out.type = *as_text(*type);
    out.format = format_of(out.type);
    for (const Json& extent : *shape) {
      const std::optional<std::uint64_t> number = as_u64(extent);
      if (!number) return fail(name, "\"shape\" holds something other than whole numbers");
      out.shape.push_back(*number);
    }
    const std::optional<std::uint64_t> begin = as_u64((*offsets)[0]);
    const std::optional<std::uint64_t> end = as_u64((*offsets)[1]);
    if (!begin || !end || *begin > *end) return fail(name, "\"data_offsets\" is not an ascending pair of numbers");
    if (*end > data.size()) {
      return make_error(ErrorCode::truncated, "{}: tensor {:.80} ends at byte {} of {} bytes of data", file, name, *end,
                        data.size());
    }
    range = {*begin, *end, {}};
    if (const Format* format = find_format(out.format)) {
      if (bytes_of(out.shape, format->block_bytes) != *end - *begin) {
        return fail(name, "shape and type do not give the size that \"data_offsets\" states");
      }
      const std::uint64_t cols = out.shape.empty() ? 1 : out.shape.back();
      out.rows_of = rows_in(data.subspan(*begin, *end - *begin), row_bytes(*format, cols));
    }
    return out;
  }
};

}  // namespace

Status read_safetensors(std::span<const std::byte> bytes, std::string_view file, std::vector<SourceTensor>& out) {
  if (bytes.size() < 8) {
    return make_error(ErrorCode::truncated, "{}: {} bytes are too few for a safetensors file", file, bytes.size());
  }
  const auto header_size = load_le<std::uint64_t>(bytes.data());
  if (header_size > bytes.size() - 8 || header_size > kMaxHeader) {
    return make_error(ErrorCode::bad_input, "{}: a header of {} bytes does not fit in a file of {}", file, header_size,
                      bytes.size());
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header_size);
  const Result<Json> json = parse_json(text, std::string(file) + ": the header");
  if (!json) return json.error();
  if (!json->is_object()) {
    return make_error(ErrorCode::bad_input, "{}: the header is not a JSON object", file);
  }

  const Reader reader{file, bytes.subspan(8 + header_size)};
  std::vector<ByteRange> ranges;
  for (const auto& [name, entry] : json->items()) {
    if (name == "__metadata__") continue;
    ByteRange range;
    Result<SourceTensor> tensor = reader.tensor(name, entry, range);
    if (!tensor) return tensor.error();
    range.name = name;
    ranges.push_back(range);
    out.push_back(std::move(*tensor));
  }
  QSF_TRY(check_no_overlap(ranges, file));
  std::uint64_t covered = 0;
  for (const ByteRange& range : ranges) covered += range.end - range.begin;
  if (covered != reader.data.size()) {
    return make_error(ErrorCode::bad_input, "{}: tensors cover {} of {} bytes of data", file, covered,
                      reader.data.size());
  }
  return {};
}

}  // namespace qsf::convert
