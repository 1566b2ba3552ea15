#include "qsf/file/layer_table.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "file/layer_checks.h"
#include "qsf/base/bytes.h"
#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/formats/kv.h"

namespace qsf {
namespace {

constexpr std::uint16_t kModelScope = 0xffff;

template <class T>
double number_of(T value) {
  return static_cast<double>(value);
}

template <class T>
std::uint32_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return static_cast<std::uint32_t>(value);
  }
}

/// Stores the bits in `to`. Returns whether they are a value in the key's range.
template <class T>
bool from_bits(const LayerKey& key, std::uint32_t bits, T& to) {
  if constexpr (std::is_same_v<T, float>) {
    to = std::bit_cast<float>(bits);
    return std::isfinite(to) && number_of(to) >= key.least && number_of(to) <= key.most;
  } else {
    to = static_cast<T>(bits);
    return number_of(bits) >= key.least && number_of(bits) <= key.most;
  }
}

bool known(Mixer mixer) {
  switch (mixer) {
#define QSF_MIXER(number, name, meaning) case Mixer::name:
#include "qsf/file/layers.def"
    return true;
  }
  return false;
}

/// Returns the error for a whole number or a float.
template <class T>
Error out_of_range(ErrorCode code, const LayerKey& key, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return make_error(code, "{} is {}; it must be {} to {}", key.name, value, key.least, key.most);
  } else {
    return make_error(code, "{} is {}; it must be {} to {}", key.name, value, static_cast<std::uint64_t>(key.least),
                      static_cast<std::uint64_t>(key.most));
  }
}

/// Returns the bytes before the entries: two counts, and one byte for each layer's kind, padded to a multiple of four.
std::size_t front_bytes(const Header& header) { return 8 + (header.n_layers + 3) / 4 * 4; }

}  // namespace

Status check_sizes(const Header& h, ErrorCode code) {
  Status status;
  visit_sizes(h, [&](const LayerKey& key, std::uint32_t value) {
    if (status && (value < key.least || value > key.most)) status = out_of_range(code, key, value);
  });
  QSF_TRY(status);
  if (h.n_kv_heads > h.n_heads) {
    return make_error(code, "n_kv_heads is {}, more than n_heads {}", h.n_kv_heads, h.n_heads);
  }
  if (h.n_heads % h.n_kv_heads != 0) {
    return make_error(code, "n_heads {} is not a multiple of n_kv_heads {}", h.n_heads, h.n_kv_heads);
  }
  if (std::uint64_t{h.n_heads} * h.head_dim > kMaxDim) {
    return make_error(code, "n_heads {} times head_dim {} is more than {}", h.n_heads, h.head_dim, kMaxDim);
  }
  return {};
}

Status check_kind(const LayerKind& kind) {
  if (!(kind.norm_epsilon > 0 && kind.norm_epsilon < 1)) {
    return make_error(ErrorCode::bad_section, "norm_epsilon is {}; it must be above 0 and below 1", kind.norm_epsilon);
  }
  if (kind.rope_dims != 0 && !(kind.rope_theta > 1.0f && kind.rope_theta < 1e12f)) {
    return make_error(ErrorCode::bad_section, "rope_theta is {}; it must be above 1 and below 1e12", kind.rope_theta);
  }
  Status status;
  visit_layer_keys(kind, [&](const LayerKey& key, const auto& value) {
    std::remove_cvref_t<decltype(value)> read;
    if (status && !from_bits(key, bits_of(value), read)) {
      status = out_of_range(ErrorCode::bad_section, key, value);
    }
  });
  QSF_TRY(status);
  if (!known(kind.mixer)) {
    return make_error(ErrorCode::unsupported, "mixer {} is not known", kind.mixer);
  }
  if (kind.n_kv_heads > kind.n_heads || kind.n_heads % kind.n_kv_heads != 0) {
    return make_error(ErrorCode::bad_section, "n_heads {} is not a multiple of n_kv_heads {}", kind.n_heads,
                      kind.n_kv_heads);
  }
  if (std::uint64_t{kind.n_heads} * kind.head_dim > kMaxDim) {
    return make_error(ErrorCode::bad_section, "n_heads {} times head_dim {} is more than {}", kind.n_heads,
                      kind.head_dim, kMaxDim);
  }
  if (kind.head_dim > kMaxHeadDim) {
    return make_error(ErrorCode::unsupported, "head_dim {} is more than {}", kind.head_dim, kMaxHeadDim);
  }
  return check_agreement(kind);
}

LayerKind default_kind(const Header& h) {
  LayerKind kind;
  kind.n_heads = h.n_heads;
  kind.n_kv_heads = h.n_kv_heads;
  kind.head_dim = kind.rope_dims = h.head_dim;
  kind.rope_theta = h.rope_theta;
  kind.rope_scaled = 1;
  kind.ffn_dim = h.ffn_dim;
  kind.activation = h.activation;
  kind.norm = h.norm;
  kind.residual_scale = 1;
  kind.stream_scale = kind.network_stream_scale = 1;
  kind.rope_scale = 1;
  kind.router_scale = 1;
  kind.router_logit_scale = 1;
  kind.gate_slope = 1;
  return kind;
}

Result<LayerKind> default_kind(const Header& h, std::span<const std::byte> meta) {
  if (h.position != Position::rope) {
    return make_error(ErrorCode::unsupported, "header: position encoding {}: this build has RoPE", h.position);
  }
  LayerKind kind = default_kind(h);
  QSF_LET(reader, MetaReader::open(meta));
  for (MetaValue value;;) {
    const Result<bool> more = reader.next(value);
    if (!more) return more.error();
    if (!*more) break;
    if (value.key == kMetaNormEpsilon && value.type == MetaType::f32) kind.norm_epsilon = value.f32;
    if (value.key == kMetaWindow && value.type == MetaType::u32) kind.window = value.u32;
  }
  return kind;
}

Result<std::uint32_t> count_kinds(const Header& header, std::span<const std::byte> section) {
  if (section.empty()) return 1u;
  ByteReader reader(section);
  const auto n_kinds = reader.read<std::uint32_t>(), n_entries = reader.read<std::uint32_t>();
  if (reader.bad() || section.size() != front_bytes(header) + std::uint64_t{n_entries} * 8) {
    return make_error(ErrorCode::bad_section, "section LAYR has {} bytes, not those of {} layers and {} entries",
                      section.size(), header.n_layers, n_entries);
  }
  if (n_kinds < 1 || n_kinds > std::min(header.n_layers, kMaxKinds)) {
    return make_error(ErrorCode::bad_section, "section LAYR has {} kinds of {} layers", n_kinds, header.n_layers);
  }
  return n_kinds;
}

Result<ModelKind> read_layer_table(const Header& header, std::span<const std::byte> meta,
                                   std::span<const std::byte> section, std::span<LayerKind> kinds,
                                   std::span<std::uint8_t> of_layer) {
  QSF_LET(n_kinds, count_kinds(header, section));
  if (kinds.size() != n_kinds || of_layer.size() != header.n_layers) {
    return make_error(ErrorCode::bad_argument, "section LAYR: room for {} kinds of {} layers", kinds.size(),
                      of_layer.size());
  }
  QSF_LET(usual, default_kind(header, meta));
  std::ranges::fill(kinds, usual);
  std::ranges::fill(of_layer, std::uint8_t{0});
  ModelKind model;
  if (!section.empty()) {
    for (std::size_t i = 0; i < of_layer.size(); ++i) {
      of_layer[i] = std::to_integer<std::uint8_t>(section[8 + i]);
      if (of_layer[i] >= n_kinds) {
        return make_error(ErrorCode::bad_section, "section LAYR: layer {} is of kind {}, there are {}", i, of_layer[i],
                          n_kinds);
      }
    }
    for (std::size_t i = 8 + of_layer.size(); i < front_bytes(header); ++i) {
      if (section[i] != std::byte{0}) return make_error(ErrorCode::bad_section, "section LAYR: byte {} is not 0", i);
    }
    for (std::uint32_t kind = 0; kind < n_kinds; ++kind) {
      if (std::ranges::find(of_layer, kind) == of_layer.end()) {
        return make_error(ErrorCode::bad_section, "section LAYR: no layer is of kind {}", kind);
      }
    }
    std::uint32_t last = 0;
    ByteReader reader(section.subspan(front_bytes(header)));
    for (std::size_t i = 0; reader.at() < section.size() - front_bytes(header); ++i) {
      const auto scope = reader.read<std::uint16_t>(), number = reader.read<std::uint16_t>();
      const auto bits = reader.read<std::uint32_t>();
      const std::uint32_t place = std::uint32_t{scope} << 16 | number;
      if (i > 0 && place <= last) {
        return make_error(ErrorCode::bad_section, "section LAYR: entry {} is not in ascending order", i);
      }
      last = place;
      if (scope != kModelScope && scope >= n_kinds) {
        return make_error(ErrorCode::bad_section, "section LAYR: entry {} is of kind {}, there are {}", i, scope,
                          n_kinds);
      }
      bool found = false;
      Status status;
      const auto take = [&](const LayerKey& key, auto& value) {
        if (key.number != number) return;
        found = true;
        if (!from_bits(key, bits, value)) {
          using T = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<T, float>) {
            status = out_of_range(ErrorCode::bad_section, key, value);
          } else {
            status = out_of_range(ErrorCode::bad_section, key, bits);
          }
        }
      };
      scope == kModelScope ? visit_model_keys(model, take) : visit_layer_keys(kinds[scope], take);
      QSF_TRY(status);
      if (!found) return make_error(ErrorCode::unsupported, "section LAYR: key {} is not known", number);
    }
  }
  for (const LayerKind& kind : kinds) QSF_TRY(check_kind(kind));
  QSF_TRY(check_layers({model, kinds, of_layer}, header.dim));
  return model;
}

Result<LayerTableBuilder> load_layer_table(const Header& header, std::span<const std::byte> meta,
                                           std::span<const std::byte> section) {
  QSF_LET(n_kinds, count_kinds(header, section));
  LayerTableBuilder out;
  out.kinds.resize(n_kinds);
  out.of_layer.resize(header.n_layers);
  QSF_LET(model, read_layer_table(header, meta, section, out.kinds, out.of_layer));
  out.model = model;
  return out;
}

std::vector<std::byte> encode_layer_table(const LayerTable& table, const LayerKind& usual) {
  struct Entry {
    std::uint16_t scope, number;
    std::uint32_t bits;
  };
  std::vector<Entry> entries;
  const auto difference = [&](std::uint16_t scope, const auto& kind, const auto& base, auto visit_all) {
    std::vector<std::uint32_t> before;
    visit_all(base, [&](const LayerKey&, const auto& value) { before.push_back(bits_of(value)); });
    std::size_t i = 0;
    visit_all(kind, [&](const LayerKey& key, const auto& value) {
      if (bits_of(value) != before[i++]) entries.push_back({scope, key.number, bits_of(value)});
    });
  };
  const auto layer_keys = [](const LayerKind& k, auto visit) { visit_layer_keys(k, visit); };
  const auto model_keys = [](const ModelKind& k, auto visit) { visit_model_keys(k, visit); };
  for (std::size_t i = 0; i < table.kinds.size(); ++i) {
    difference(static_cast<std::uint16_t>(i), table.kinds[i], usual, layer_keys);
  }
  difference(kModelScope, table.model, ModelKind{}, model_keys);
  if (entries.empty() && table.kinds.size() < 2) return {};
  heap_sort(entries, {}, [](const Entry& e) { return std::uint32_t{e.scope} << 16 | e.number; });
  const std::size_t n_layers = table.of_layer.size();
  std::vector<std::byte> out(8 + (n_layers + 3) / 4 * 4 + entries.size() * 8);
  store_le(out.data(), static_cast<std::uint32_t>(std::max<std::size_t>(table.kinds.size(), 1)));
  store_le(out.data() + 4, static_cast<std::uint32_t>(entries.size()));
  for (std::size_t i = 0; i < n_layers; ++i) out[8 + i] = std::byte{table.of_layer[i]};
  std::byte* at = out.data() + out.size() - entries.size() * 8;
  for (const Entry& entry : entries) {
    store_le(at, entry.scope);
    store_le(at + 2, entry.number);
    store_le(at + 4, entry.bits);
    at += 8;
  }
  return out;
}

}  // namespace qsf
