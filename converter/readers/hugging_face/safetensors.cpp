#include "converter/readers/hugging_face/safetensors.h"

#include <string>

#include "converter/files/byte_ranges.h"
#include "converter/files/json.h"
#include "converter/types/decoded.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit

struct Reader {
  const Input& file;
  std::uint64_t data;       // the position of the bytes after the header
  std::uint64_t data_size;  // their number

  Error fail(std::string_view tensor, const char* what) const {
    return make_error(ErrorCode::bad_input, "{:.100}: tensor {:.80}: {}", file.name, tensor, what);
  }

  Result<LoadedTensor> tensor(const std::string& name, const Json& entry, ByteRange& range) const {
    const Json* type = find(entry, "dtype");
    const Json* shape = find(entry, "shape");
    const Json* offsets = find(entry, "data_offsets");
    if (!type || !as_text(*type)) return fail(name, "\"dtype\" is missing or not a text");
    if (!shape || !shape->is_array()) return fail(name, "\"shape\" is missing or not a list");
    if (!offsets || !offsets->is_array() || offsets->size() != 2) {
      return fail(name, "\"data_offsets\" is missing or not a pair");
    }
    LoadedTensor out;
    out.name = name;
    out.type = *as_text(*type);
    for (const Json& extent : *shape) {
      const std::optional<std::uint64_t> number = as_u64(extent);
      if (!number) return fail(name, "\"shape\" holds something other than whole numbers");
      out.shape.push_back(*number);
    }
    if (out.shape.empty()) out.shape.push_back(1);  // a number
    const std::optional<std::uint64_t> begin = as_u64((*offsets)[0]);
    const std::optional<std::uint64_t> end = as_u64((*offsets)[1]);
    if (!begin || !end || *begin > *end) return fail(name, "\"data_offsets\" is not an ascending pair of numbers");
    if (*end > data_size) {
      return make_error(ErrorCode::truncated, "{:.100}: tensor {:.80} ends at byte {} of {} bytes of data", file.name,
                        name, *end, data_size);
    }
    range = {*begin, *end, {}};
    const StoredType* stored = find_stored_type(out.type);
    if (stored == nullptr || stored->block != 1) return out;
    if (bytes_of(out.shape, stored->block_bytes) != *end - *begin) {
      return fail(name, "shape and type do not give the size that \"data_offsets\" states");
    }
    place_rows(*stored, file, data + *begin, *end - *begin, out);
    return out;
  }
};

}  // namespace

Status read_safetensors(const Input& file, std::vector<LoadedTensor>& out) {
  if (file.size < 8) {
    return make_error(ErrorCode::truncated, "{:.100}: {} bytes are too few for a safetensors file", file.name,
                      file.size);
  }
  QSF_LET(front, read_head(file, 8));
  const auto header_size = load_le<std::uint64_t>(front.data());
  if (header_size > file.size - 8 || header_size > kMaxHeader) {
    return make_error(ErrorCode::bad_input, "{:.100}: a header of {} bytes does not fit in a file of {}", file.name,
                      header_size, file.size);
  }
  QSF_LET(json, read_json(file, 8, header_size));
  if (!json.is_object()) {
    return make_error(ErrorCode::bad_input, "{:.100}: the header is not a JSON object", file.name);
  }

  const Reader reader{file, 8 + header_size, file.size - 8 - header_size};
  std::vector<ByteRange> ranges;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    ByteRange range;
    Result<LoadedTensor> tensor = reader.tensor(name, entry, range);
    if (!tensor) return tensor.error();
    range.name = name;
    ranges.push_back(range);
    out.push_back(std::move(*tensor));
  }
  QSF_TRY(check_no_overlap(ranges, file.name));
  std::uint64_t covered = 0;
  for (const ByteRange& range : ranges) covered += range.end - range.begin;
  if (covered != reader.data_size) {
    return make_error(ErrorCode::bad_input, "{:.100}: tensors cover {} of {} bytes of data", file.name, covered,
                      reader.data_size);
  }
  return {};
}

}  // namespace qsf::convert
