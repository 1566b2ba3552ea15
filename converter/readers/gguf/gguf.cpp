#include "converter/readers/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "converter/files/byte_ranges.h"
#include "converter/readers/gguf/ternary.h"
#include "converter/types/decoded.h"
#include "converter/types/gguf_form.h"
#include "converter/types/gguf_keys.h"
#include "qsf/base/bytes.h"
#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr std::uint32_t kMagic = tag("GGUF");
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMaxDims = 4;
constexpr int kMaxNesting = 4;
constexpr std::uint64_t kFirstFront = 1 << 20;  // the front's size is unknown before it is read
constexpr std::uint64_t kMaxFront = 128 << 20;
constexpr std::uint64_t kMaxEntries = 1 << 16;  // values, and tensors

/// Bytes of one value; 0 for texts and arrays.
constexpr std::array<std::uint32_t, 13> kTypeSize{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr std::string_view kTernary = "I2_S";

Error truncated(const char* where) { return make_error(ErrorCode::truncated, "GGUF: the file ends within {}", where); }

/// Lengths have 64 bits in versions 2 and 3.
std::string_view read_text(ByteReader& reader) { return reader.text(reader.read<std::uint64_t>()); }

Status read_value(ByteReader& reader, std::span<const std::byte> file, GgufType type, GgufValue& out, int nesting);

Status skip_elements(ByteReader& reader, std::span<const std::byte> file, GgufType element, std::uint64_t count,
                     int nesting) {
  const std::uint32_t size = kTypeSize[static_cast<std::uint32_t>(element)];
  if (size != 0) {
    if (count > reader.left() / size) return truncated("an array");
    reader.take(count * size);
    return {};
  }
  if (count > reader.left() / 8) return truncated("an array");  // a text has its length, an array more
  for (std::uint64_t i = 0; i < count; ++i) {
    GgufValue ignored;
    QSF_TRY(read_value(reader, file, element, ignored, nesting + 1));
  }
  return {};
}

Status read_value(ByteReader& reader, std::span<const std::byte> file, GgufType type, GgufValue& out, int nesting) {
  out.type = type;
  if (type == GgufType::text) {
    const std::string_view text = read_text(reader);
    out.bytes = std::as_bytes(std::span(text.data(), text.size()));
  } else if (type == GgufType::array) {
    const auto element = reader.read<std::uint32_t>();
    out.count = reader.read<std::uint64_t>();
    if (reader.bad()) return truncated("a value");
    if (element >= kTypeSize.size() || nesting >= kMaxNesting) {
      return make_error(ErrorCode::bad_input, "GGUF: an array has elements of type {}, nested {} deep", element,
                        nesting);
    }
    out.element = static_cast<GgufType>(element);
    const std::size_t begin = reader.at();
    QSF_TRY(skip_elements(reader, file, out.element, out.count, nesting));
    out.bytes = file.subspan(begin, reader.at() - begin);
  } else {
    out.bytes = reader.take(kTypeSize[static_cast<std::uint32_t>(type)]);
  }
  return reader.bad() ? Status(truncated("a value")) : Status{};
}

Status read_values(ByteReader& reader, std::span<const std::byte> file, std::uint64_t count, Gguf& out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key(read_text(reader));
    const auto type = reader.read<std::uint32_t>();
    if (reader.bad()) return truncated("the keys and values");
    if (type >= kTypeSize.size()) {
      return make_error(ErrorCode::bad_input, "GGUF: the value of {:.80} has the unknown type {}", key, type);
    }
    GgufValue value;
    QSF_TRY(read_value(reader, file, static_cast<GgufType>(type), value, 0));
    if (!out.values.emplace(key, value).second) {
      return make_error(ErrorCode::bad_input, "GGUF: the key {:.80} appears twice", key);
    }
  }
  return {};
}

struct TensorInfo {
  LoadedTensor tensor;
  std::uint64_t offset = 0;
};

Result<TensorInfo> read_tensor_info(ByteReader& reader) {
  TensorInfo out;
  out.tensor.name = read_text(reader);
  const auto n_dims = reader.read<std::uint32_t>();
  if (reader.bad()) return truncated("the list of tensors");
  if (n_dims > kMaxDims) {
    return make_error(ErrorCode::bad_input, "GGUF: tensor {:.80} has {} dimensions", out.tensor.name, n_dims);
  }
  for (std::uint32_t d = 0; d < n_dims; ++d) out.tensor.shape.push_back(reader.read<std::uint64_t>());
  std::vector<std::uint64_t>& shape = out.tensor.shape;
  // Some writers write all four dimensions. A matrix of one row has two.
  if (shape.size() > 2) {
    while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
  }
  std::ranges::reverse(shape);  // GGUF has the innermost first
  const auto type = reader.read<std::uint32_t>();
  out.offset = reader.read<std::uint64_t>();
  if (reader.bad()) return truncated("the list of tensors");
  out.tensor.type = ggml_name(type);
  out.tensor.format = ggml_format(type);
  return out;
}

// A type whose number has another block in other programs. The tensor's size distinguishes them.
struct Twin {
  FormatId format;
  FormatId other;
};
constexpr std::array kTwins{Twin{ggml_type(42), own_type(27)}};  // q2_0 of 64 weights, or of 128

/// Returns the twin whose size fits. `room` is the number of bytes up to the next tensor.
FormatId twin_that_fits(FormatId format, std::uint64_t rows, std::uint64_t cols, std::uint64_t room) {
  for (const Twin& twin : kTwins) {
    const Format& other = *find_format(twin.other);
    if (twin.format == format && rows * row_bytes(*find_format(format), cols) > room && cols % other.block == 0 &&
        rows * row_bytes(other, cols) <= room) {
      return twin.other;
    }
  }
  return format;
}

/// The tensors' bytes: those of the file from `begin` on.
struct Data {
  const Input& file;
  std::uint64_t begin, size;
  std::uint64_t alignment;
};

/// Gives a tensor its rows if its type can be read.
Status place_tensor(const Data& data, const TensorInfo& info, std::uint64_t room, LoadedTensor& tensor,
                    ByteRange& range) {
  range = {info.offset, info.offset, tensor.name};
  const char* name = tensor.name.c_str();
  if (info.offset % data.alignment != 0 || info.offset > data.size) {
    return make_error(ErrorCode::bad_input, "GGUF: tensor {:.80} begins at {} of {} bytes of data", name, info.offset,
                      data.size);
  }
  const Format* format = find_format(tensor.format);
  const StoredType* stored = format ? nullptr : find_stored_type(tensor.type);
  if (!format && !stored) return {};
  const std::uint32_t block = format ? format->block : stored->block;
  const std::uint64_t cols = tensor.shape.empty() ? 1 : tensor.shape.back();
  std::uint64_t rows = 1;
  bool small = cols <= kMaxVocab;
  for (std::size_t d = 0; small && d + 1 < tensor.shape.size(); ++d) {
    small = tensor.shape[d] <= kMaxVocab;
    rows *= small ? tensor.shape[d] : 1;
    small = small && rows <= kMaxVocab;
  }
  if (!small || cols % block != 0) {
    return make_error(ErrorCode::bad_input, "GGUF: tensor {:.80} of {} has rows of {} weights", name, tensor.type,
                      cols);
  }
  std::uint64_t row_size = stored ? cols / block * stored->block_bytes : 0;
  if (format) {
    tensor.format = twin_that_fits(tensor.format, rows, cols, room);
    row_size = row_bytes(*find_format(tensor.format), cols);
  }
  const std::uint64_t size = rows * row_size;
  if (size > data.size - info.offset) {
    return make_error(ErrorCode::truncated, "GGUF: tensor {:.80} needs {} bytes at {}, but there are {}", name, size,
                      info.offset, data.size);
  }
  range.end = info.offset + size;
  if (stored) {
    place_rows(*stored, data.file, data.begin + info.offset, size, tensor);
  } else {
    tensor.rows_of = rows_in(data.file, data.begin + info.offset, size, row_size);
  }
  return {};
}

/// Returns one value of a type with a size as a double; nothing for texts and arrays.
std::optional<double> scalar(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::u8:
      return load_le<std::uint8_t>(at);
    case GgufType::i8:
      return load_le<std::int8_t>(at);
    case GgufType::u16:
      return load_le<std::uint16_t>(at);
    case GgufType::i16:
      return load_le<std::int16_t>(at);
    case GgufType::u32:
      return load_le<std::uint32_t>(at);
    case GgufType::i32:
      return load_le<std::int32_t>(at);
    case GgufType::f32:
      return load_le<float>(at);
    case GgufType::u64:
      return static_cast<double>(load_le<std::uint64_t>(at));
    case GgufType::i64:
      return static_cast<double>(load_le<std::int64_t>(at));
    case GgufType::f64:
      return load_le<double>(at);
    default:
      return {};
  }
}

const GgufValue* value_of(const Gguf& gguf, std::string_view key) {
  const auto at = gguf.values.find(key);
  return at == gguf.values.end() ? nullptr : &at->second;
}

}  // namespace

std::optional<double> Gguf::number(std::string_view key) const {
  const GgufValue* value = value_of(*this, key);
  return value ? scalar(value->type, value->bytes.data()) : std::nullopt;
}

std::optional<std::uint32_t> Gguf::u32(std::string_view key) const {
  const std::optional<double> value = number(key);
  if (!value || !(*value >= 0 && *value <= std::numeric_limits<std::uint32_t>::max())) return {};
  const auto whole = static_cast<std::uint32_t>(*value);
  return whole == *value ? std::optional<std::uint32_t>(whole) : std::nullopt;
}

std::optional<bool> Gguf::flag(std::string_view key) const {
  const GgufValue* value = value_of(*this, key);
  if (!value || value->type != GgufType::boolean) return {};
  return value->bytes[0] != std::byte{0};
}

std::optional<std::string_view> Gguf::text(std::string_view key) const {
  const GgufValue* value = value_of(*this, key);
  if (!value || value->type != GgufType::text) return {};
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

std::optional<std::vector<std::string_view>> Gguf::texts(std::string_view key) const {
  const GgufValue* value = value_of(*this, key);
  if (!value || value->type != GgufType::array || value->element != GgufType::text || value->count > kMaxVocab) {
    return {};
  }
  std::vector<std::string_view> out;
  ByteReader reader(value->bytes);
  for (std::uint64_t i = 0; i < value->count && !reader.bad(); ++i) out.push_back(read_text(reader));
  return out;
}

std::optional<std::vector<double>> Gguf::numbers(std::string_view key) const {
  const GgufValue* value = value_of(*this, key);
  if (!value || value->type != GgufType::array) return {};
  const std::uint32_t size = kTypeSize[static_cast<std::uint32_t>(value->element)];
  if (size == 0 || value->count > kMaxVocab) return {};
  std::vector<double> out;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const std::byte* const at = &value->bytes[i * size];
    out.push_back(value->element == GgufType::boolean ? (*at != std::byte{0} ? 1 : 0) : *scalar(value->element, at));
  }
  return out;
}

bool is_gguf(std::span<const std::byte> head) {
  return head.size() >= 4 && load_le<std::uint32_t>(head.data()) == kMagic;
}

namespace {

/// Parses everything before the tensors' bytes from out.front. Returns the offset of its end, or truncated if out.front
/// is not all of it.
Result<std::uint64_t> parse_front(std::uint64_t file_size, Gguf& out, std::vector<TensorInfo>& infos) {
  const std::span<const std::byte> bytes = out.front;
  ByteReader reader(bytes);
  if (reader.read<std::uint32_t>() != kMagic) return make_error(ErrorCode::bad_magic, "this is no GGUF file");
  const auto version = reader.read<std::uint32_t>();
  if (reader.bad()) return truncated("the header");
  if (version < 2 || version > 3) {
    return make_error(ErrorCode::bad_version, "GGUF version {} is not supported, versions 2 and 3 are{}", version,
                      (version & 0xffff) == 0 && version != 0 ? " (this file is big-endian)" : "");
  }
  const auto n_tensors = reader.read<std::uint64_t>();
  const auto n_values = reader.read<std::uint64_t>();
  if (reader.bad()) return truncated("the header");
  // Least sizes: a value has its key's length, type and one byte; a tensor has name, dimensions, type and offset.
  const std::uint64_t left = file_size - reader.at();
  if (n_values > left / 13 || n_tensors > left / 24) {
    return make_error(ErrorCode::bad_input, "GGUF: {} values and {} tensors do not fit in a file of {} bytes", n_values,
                      n_tensors, file_size);
  }
  if (n_values > kMaxEntries || n_tensors > kMaxEntries) {
    return make_error(ErrorCode::unsupported, "GGUF: {} values and {} tensors are too many, {} of each is the most",
                      n_values, n_tensors, kMaxEntries);
  }
  QSF_TRY(read_values(reader, bytes, n_values, out));
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    QSF_LET(info, read_tensor_info(reader));
    infos.push_back(std::move(info));
  }
  return reader.at();
}

/// Reads as much of the file as the front needs, each byte once.
Result<std::uint64_t> read_front(const Input& file, Gguf& out, std::vector<TensorInfo>& infos) {
  std::vector<std::byte> front;
  for (std::uint64_t size = kFirstFront;; size *= 2) {
    const std::uint64_t most = std::min(file.size, kMaxFront), had = front.size();
    front.resize(std::min(size, most));
    QSF_TRY(file.read(had, std::span(front).subspan(had)));
    out = {};
    infos.clear();
    out.front = std::move(front);
    const Result<std::uint64_t> end = parse_front(file.size, out, infos);
    if (end || end.error().code != ErrorCode::truncated || out.front.size() == file.size) return end;
    if (out.front.size() == most) {
      return make_error(ErrorCode::unsupported, "GGUF: keys, values and the list of tensors have more than {} bytes",
                        most);
    }
    front = std::move(out.front);
  }
}

}  // namespace

namespace {

/// Places I2_S tensors after all others are known. Tensors that have the scales of others are marked as used.
Status place_ternaries(const Data& data, std::span<const TensorInfo> infos, std::span<const std::uint64_t> rooms,
                       TernaryLayout layout, std::span<LoadedTensor> tensors, std::span<ByteRange> ranges,
                       std::vector<bool>& used) {
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) places.emplace(tensors[i].name, i);
  const auto bytes_of_tensor = [&](std::size_t k) {
    return TensorBytes{data.begin + infos[k].offset, std::min(rooms[k], data.size - infos[k].offset)};
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].type != kTernary) continue;
    auto scales = places.end();
    for (const std::string& name : ternary_scale_names(tensors[i].name)) {
      if (scales == places.end()) scales = places.find(name);
    }
    // A scale of one number is a factor of the whole tensor; see fold_gguf_scales.
    if (scales != places.end() && tensors[scales->second].shape == std::vector<std::uint64_t>{1}) scales = places.end();
    const bool apart = scales != places.end();
    if (apart) used[scales->second] = true;
    QSF_LET(size, place_ternary(data.file, bytes_of_tensor(i), apart ? &tensors[scales->second] : nullptr,
                                apart ? bytes_of_tensor(scales->second) : TensorBytes{}, layout, tensors[i]));
    ranges[i].end = infos[i].offset + size;
  }
  return {};
}

}  // namespace

Result<Gguf> read_gguf(const Input& file, TernaryLayout ternary) {
  Gguf out;
  std::vector<TensorInfo> infos;
  QSF_LET(front_end, read_front(file, out, infos));
  std::uint64_t alignment = kDefaultAlignment;
  if (out.values.contains(gguf_key::kAlignment)) alignment = out.u32(gguf_key::kAlignment).value_or(0);
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    return make_error(ErrorCode::bad_input, "GGUF: general.alignment is not a power of two");
  }
  const std::uint64_t begin = (front_end + alignment - 1) / alignment * alignment;
  if (begin > file.size && !infos.empty()) return truncated("the list of tensors");
  const Data data{file, begin, file.size - std::min(begin, file.size), alignment};

  std::vector<std::uint64_t> ends{data.size};
  for (const TensorInfo& info : infos) ends.push_back(info.offset);
  heap_sort(ends);
  out.tensors.reserve(infos.size());
  std::vector<ByteRange> ranges(infos.size());
  std::vector<std::uint64_t> rooms;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    out.tensors.push_back(std::move(infos[i].tensor));
    const auto next = std::ranges::upper_bound(ends, infos[i].offset);
    const std::uint64_t room = next == ends.end() ? 0 : *next - infos[i].offset;
    rooms.push_back(room);
    QSF_TRY(place_tensor(data, infos[i], room, out.tensors.back(), ranges[i]));
  }
  std::vector<bool> used(infos.size(), false);
  QSF_TRY(place_ternaries(data, infos, rooms, ternary, out.tensors, ranges, used));
  QSF_TRY(check_no_overlap(ranges, "GGUF"));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    if (kept != i) out.tensors[kept] = std::move(out.tensors[i]);
    ++kept;
  }
  out.tensors.resize(kept);
  return out;
}

}  // namespace qsf::convert
