#include "converter/readers/hugging_face/pytorch.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "converter/files/pickle.h"
#include "converter/files/zip.h"
#include "converter/tensors/parts.h"
#include "converter/types/decoded.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::size_t kMaxDims = 8;
constexpr std::size_t kMaxTensors = 1 << 15;  // in one file
// A pickled number of ten bytes, the start of a file in the older layout.
constexpr std::array<std::uint8_t, 15> kMagic{0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                              0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
constexpr std::string_view kPickleName = "/data.pkl";
constexpr std::int64_t kLegacyVersion = 1001;

/// The contents of a storage's persistent id.
struct StorageName {
  std::string_view key;
  std::string_view type;     // empty: bytes
  std::uint64_t n_elements;  // of the type
};

/// A storage's bytes in the file.
struct Storage {
  std::uint64_t begin = 0, size = 0;
};
using Storages = std::map<std::string, Storage, std::less<>>;

struct Reader {
  const Input& file;
  const Pickle& pickle;
  bool legacy = false;  // persistent ids have a sixth value, a view
  std::shared_ptr<TurnedWindow> window = std::make_shared<TurnedWindow>();

  Error damaged(std::string_view tensor, const char* what) const {
    return make_error(ErrorCode::bad_input, "{:.100}: tensor {:.80}: {}", file.name, tensor, what);
  }

  Result<StorageName> storage(PickleId id, std::string_view tensor) const {
    const std::span<const PickleId> parts = pickle.elements(id);
    if (pickle[id].kind != PickleKind::storage || parts.size() != (legacy ? 6 : 5) ||
        pickle.text(parts[0]) != "storage") {
      return damaged(tensor, "its first value is no storage");
    }
    const GlobalName* type = pickle.global(parts[1]);
    const std::optional<std::string_view> key = pickle.text(parts[2]);
    const std::optional<std::int64_t> n_elements = pickle.number(parts[4]);
    if (type == nullptr || type->meaning != PickleGlobal::type || !key || !n_elements || *n_elements < 0) {
      return damaged(tensor, "its storage has no type, key or size");
    }
    if (legacy && pickle[parts[5]].kind != PickleKind::none) {
      return make_error(ErrorCode::unsupported, "{:.100}: the storage of {:.80} is a view of another", file.name,
                        tensor);
    }
    return StorageName{*key, type->type, static_cast<std::uint64_t>(*n_elements)};
  }

  /// Returns the numbers of a tuple; empty unless it has at most kMaxDims numbers from 0.
  std::optional<std::vector<std::uint64_t>> numbers(PickleId id) const {
    std::vector<std::uint64_t> out;
    if (pickle[id].kind != PickleKind::tuple || pickle.elements(id).size() > kMaxDims) return {};
    for (const PickleId element : pickle.elements(id)) {
      const std::optional<std::int64_t> number = pickle.number(element);
      if (!number || *number < 0) return {};
      out.push_back(static_cast<std::uint64_t>(*number));
    }
    return out;
  }

  Result<LoadedTensor> tensor(std::string_view name, PickleId id, const Storages& storages) const;
};

/// Returns the distance of neighbours in each dimension of a contiguous tensor.
std::vector<std::uint64_t> contiguous_strides(std::span<const std::uint64_t> shape) {
  std::vector<std::uint64_t> out(shape.size());
  std::uint64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    out[d] = stride;
    stride *= std::max<std::uint64_t>(1, shape[d]);
  }
  return out;
}

/// Returns whether strides agree. Dimensions with one element have no stride.
bool same_strides(std::span<const std::uint64_t> shape, std::span<const std::uint64_t> a,
                  std::span<const std::uint64_t> b) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

/// Places the rows of a tensor that is stored transposed, as [cols, rows].
void place_transposed(const StoredType& type, const Input& input, std::uint64_t begin, std::uint64_t size,
                      const std::shared_ptr<TurnedWindow>& window, LoadedTensor& out) {
  auto stored = std::make_shared<LoadedTensor>();
  stored->name = out.name;
  stored->type = out.type;
  stored->shape = {out.shape[1], out.shape[0]};
  place_rows(type, input, begin, size, *stored);
  const auto turned =
      std::make_shared<const LoadedTensor>(part_of(*stored, {.transposed = true}, {0, stored->shape[1]}, window));
  out.format = turned->format;
  out.rows_of = [stored, turned](std::uint32_t first, std::uint32_t n, std::span<std::byte> to) {
    return turned->rows_of(first, n, to);
  };
}

Result<LoadedTensor> Reader::tensor(std::string_view name, PickleId id, const Storages& storages) const {
  const std::span<const PickleId> arguments = pickle.elements(id);
  const bool typed = pickle[id].global == PickleGlobal::rebuild_tensor_typed;
  if (arguments.size() < (typed ? 7 : 6)) return damaged(name, "its constructor has too few values");
  QSF_LET(from, storage(arguments[0], name));
  const std::optional<std::int64_t> offset = pickle.number(arguments[1]);
  const auto shape = numbers(arguments[2]), strides = numbers(arguments[3]);
  if (!offset || *offset < 0 || !shape || !strides || shape->size() != strides->size()) {
    return damaged(name, "its offset, shape or strides make no sense");
  }
  LoadedTensor out;
  out.name = name;
  out.type = from.type;
  out.shape = *shape;
  if (typed) {
    const GlobalName* type = pickle.global(arguments[6]);
    if (type == nullptr || type->type.empty()) return damaged(name, "it has no type");
    out.type = type->type;
  }
  const auto at = storages.find(from.key);
  if (at == storages.end()) return damaged(name, "its storage is not there");
  const Storage& bytes = at->second;
  const StoredType* stored_as = from.type.empty() ? nullptr : find_stored_type(from.type);
  const std::uint64_t from_bytes = stored_as != nullptr ? stored_as->block_bytes : 1;
  if (bytes.size / from_bytes != from.n_elements || bytes.size % from_bytes != 0) {
    return damaged(name, "its storage has another size than it states");
  }
  const StoredType* type = find_stored_type(out.type);
  if (type == nullptr) return out;  // listed, and refused if it is needed

  const std::uint64_t element = type->block_bytes;
  const auto begin = static_cast<std::uint64_t>(*offset);
  const std::optional<std::uint64_t> size = bytes_of(out.shape, element);
  if (!size || begin > bytes.size / element || *size > bytes.size - begin * element) {
    return make_error(ErrorCode::bad_input, "{:.100}: tensor {:.80} passes the end of its storage of {} bytes",
                      file.name, name, bytes.size);
  }
  const std::uint64_t data = bytes.begin + begin * element;
  if (*size == 0 || same_strides(out.shape, *strides, contiguous_strides(out.shape))) {
    place_rows(*type, file, data, *size, out);
    return out;
  }
  if (out.shape.size() == 2 && matrix_shape(out.shape) &&
      same_strides(out.shape, *strides, std::array{std::uint64_t{1}, out.shape[0]})) {
    place_transposed(*type, file, data, *size, window, out);
    return out;
  }
  return make_error(ErrorCode::unsupported,
                    "{:.100}: tensor {:.80} is a view that is neither contiguous nor transposed", file.name, name);
}

/// Adds every tensor of the dictionary. `storages` must have the storages that they name.
Status add_tensors(const Reader& reader, const Storages& storages, std::vector<LoadedTensor>& out) {
  const Pickle& pickle = reader.pickle;
  if (pickle[pickle.root].kind != PickleKind::dict) {
    return make_error(ErrorCode::unsupported, "{:.100} holds something other than a dictionary of tensors",
                      reader.file.name);
  }
  const std::span<const PickleId> entries = pickle.elements(pickle.root);
  if (entries.size() > 2 * kMaxTensors) {
    return make_error(ErrorCode::unsupported, "{:.100} has {} tensors, {} is the most", reader.file.name,
                      entries.size() / 2, kMaxTensors);
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < entries.size(); i += 2) {
    const std::optional<std::string_view> name = pickle.text(entries[i]);
    if (!name) {
      return make_error(ErrorCode::bad_input, "{:.100}: the dictionary has a key that is no text", reader.file.name);
    }
    if (pickle[entries[i + 1]].kind != PickleKind::tensor) {
      return make_error(ErrorCode::unsupported, "{:.100}: {:.80} is no tensor", reader.file.name, *name);
    }
    if (!names.insert(*name).second) {
      return make_error(ErrorCode::bad_input, "{:.100}: tensor {:.80} is there twice", reader.file.name, *name);
    }
    QSF_LET(tensor, reader.tensor(*name, entries[i + 1], storages));
    out.push_back(std::move(tensor));
  }
  return {};
}

Status read_archive(const Input& file, std::vector<LoadedTensor>& out) {
  QSF_LET(entries, read_zip(file));
  const auto is_pickle = [](const auto& entry) { return entry.first.ends_with(kPickleName); };
  const auto at = std::ranges::find_if(entries, is_pickle);
  if (at == entries.end() || std::ranges::count_if(entries, is_pickle) != 1) {
    return make_error(ErrorCode::bad_input, "{:.100}: the zip archive does not have one data.pkl", file.name);
  }
  if (at->second.size > kMaxPickleBytes) {
    return make_error(ErrorCode::unsupported, "{:.100}: data.pkl has {} bytes, {} is the most", file.name,
                      at->second.size, kMaxPickleBytes);
  }
  const std::string folder = at->first.substr(0, at->first.size() - kPickleName.size());
  if (const auto order = entries.find(folder + "/byteorder"); order != entries.end()) {
    QSF_LET(text, read_range(file, order->second.begin, std::min<std::uint64_t>(order->second.size, 16)));
    if (std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) != "little") {
      return make_error(ErrorCode::unsupported, "{:.100}: the weights are big-endian", file.name);
    }
  }
  QSF_LET(bytes, read_range(file, at->second.begin, at->second.size));
  QSF_LET(pickle, read_pickle(bytes, file.name));
  Storages storages;
  const std::string prefix = folder + "/data/";
  for (auto entry = entries.lower_bound(prefix); entry != entries.end() && entry->first.starts_with(prefix); ++entry) {
    storages[entry->first.substr(prefix.size())] = {entry->second.begin, entry->second.size};
  }
  return add_tensors({file, pickle}, storages, out);
}

/// Returns the position of each storage. They follow each other in the order of their keys, each after its number of
/// elements.
Result<Storages> find_storages(const Reader& reader, const Pickle& keys, std::uint64_t at) {
  const Input& file = reader.file;
  std::map<std::string_view, std::uint64_t> element_bytes;  // by key
  for (PickleId id = 0; id < reader.pickle.values.size(); ++id) {
    if (reader.pickle[id].kind != PickleKind::storage) continue;
    QSF_LET(name, reader.storage(id, "(one of the pickle)"));
    const StoredType* type = find_stored_type(name.type);
    const auto [known, is_new] = element_bytes.emplace(name.key, type != nullptr ? type->block_bytes : 1);
    if (!is_new && known->second != (type != nullptr ? type->block_bytes : 1)) {
      return make_error(ErrorCode::bad_input, "{:.100}: the storage {:.40} has two types", file.name, name.key);
    }
  }
  if (keys[keys.root].kind != PickleKind::list) {
    return make_error(ErrorCode::bad_input, "{:.100}: there is no list of storages", file.name);
  }
  Storages out;
  for (const PickleId id : keys.elements(keys.root)) {
    const std::optional<std::string_view> key = keys.text(id);
    const auto known = key ? element_bytes.find(*key) : element_bytes.end();
    if (known == element_bytes.end() || out.contains(*key)) {
      return make_error(ErrorCode::bad_input, "{:.100}: storage {} is listed twice or belongs to no tensor", file.name,
                        out.size());
    }
    QSF_LET(bytes, read_range(file, at, sizeof(std::uint64_t)));
    const auto n_elements = load_le<std::uint64_t>(bytes.data());
    at += bytes.size();
    if (n_elements > (file.size - at) / known->second) {
      return make_error(ErrorCode::truncated, "{:.100}: the storage {:.40} has {} elements, which pass the file's end",
                        file.name, *key, n_elements);
    }
    const std::uint64_t size = n_elements * known->second;
    out[std::string(*key)] = {at, size};
    at += size;
  }
  if (at == file.size) return out;
  return make_error(ErrorCode::bad_input, "{:.100} has {} bytes after its last storage", file.name, file.size - at);
}

/// Reads the pickle at `at` and moves `at` to its end.
Result<Pickle> next_pickle(std::span<const std::byte> front, std::string_view file, std::size_t& at) {
  QSF_LET(pickle, read_pickle(front.subspan(at), file));
  at += pickle.end;
  return std::move(pickle);
}

Status read_legacy(const Input& file, std::vector<LoadedTensor>& out) {
  QSF_LET(front, read_head(file, 2 * kMaxPickleBytes + (1 << 10)));
  std::size_t at = kMagic.size();
  QSF_LET(version, next_pickle(front, file.name, at));
  if (version.number(version.root) != kLegacyVersion) {
    return make_error(ErrorCode::unsupported, "{:.100}: this is not version {} of torch.save's older layout", file.name,
                      kLegacyVersion);
  }
  QSF_LET(machine, next_pickle(front, file.name, at));
  const std::span<const PickleId> facts = machine.elements(machine.root);
  for (std::size_t i = 0; i + 1 < facts.size(); i += 2) {
    const Pickle::Value& fact = machine[facts[i + 1]];
    if (machine.text(facts[i]) != "little_endian" || (fact.kind == PickleKind::boolean && fact.number == 1)) continue;
    return make_error(ErrorCode::unsupported, "{:.100}: the weights are big-endian", file.name);
  }
  QSF_LET(pickle, next_pickle(front, file.name, at));
  QSF_LET(keys, next_pickle(front, file.name, at));
  const Reader reader{file, pickle, true};
  QSF_LET(storages, find_storages(reader, keys, at));
  return add_tensors(reader, storages, out);
}

}  // namespace

Status read_pytorch(const Input& file, std::vector<LoadedTensor>& out) {
  QSF_LET(head, read_head(file, kMagic.size()));
  if (is_zip(head)) return read_archive(file, out);
  if (head.size() == kMagic.size() && std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0) {
    return read_legacy(file, out);
  }
  return make_error(ErrorCode::unsupported, "{:.100} has neither of the two layouts that torch.save writes", file.name);
}

}  // namespace qsf::convert
