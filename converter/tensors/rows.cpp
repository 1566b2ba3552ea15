#include "converter/tensors/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "converter/types/written_type.h"
#include "qsf/base/bytes.h"
#include "qsf/base/half.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kReadBytes = 1 << 20;  // bytes of rows that are read together
constexpr std::uint64_t kMostRows = 1024;      // rows in work at once
constexpr std::uint32_t kTogether = 8;         // rows of one thread

/// Returns the largest factor of scales: the distance of the levels from the offset, times the largest 8-bit float.
float reach_of(const Format& format) {
  int top = (1 << format.code_bits) - 1;
  if (format.levels != Levels::codes) {
    top = *std::ranges::max_element(kLevels[static_cast<std::size_t>(format.levels)]);
  }
  const int largest = format.sub.kind == Sub::e4m3 ? 224 : 1;
  return static_cast<float>(std::max(top - format.offset, int{format.offset}) * largest);
}

/// Returns a number of a block; 0 if the format has none. The largest exponent is not a number, as in the OCP's
/// microscaling formats.
float number_of(const Field& field, const std::byte* block) {
  constexpr int kBias = 128, kNone = 255;
  switch (field.type) {
    case Scale::none:
      return 0;
    case Scale::f16:
      return f16_to_f32(load_le<f16>(block + field.at));
    case Scale::f32:
      return load_le<float>(block + field.at);
    case Scale::exponent: {
      const int exponent = std::to_integer<int>(block[field.at]);
      return exponent == kNone ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, exponent - kBias);
    }
  }
  return 0;
}

struct RowConversion {
  const LoadedTensor& tensor;
  const Format& from;
  const Format& to;
  std::uint32_t rows, cols;
  RotatedHeads heads = {};
  const RowCost* cost = nullptr;
  std::uint32_t end = 0;        // of the source's rows that will be read
  bool copies = false;          // rows already have their type
  std::uint64_t from_size = 0;  // bytes of a row that is read
  RowRoom* room = nullptr;      // its `raw` has the source's rows [raw_begin, raw_begin + n_raw)
  std::uint32_t raw_begin = 0, n_raw = 0;

  /// Returns one row of the source, which is read together with later ones.
  Result<std::span<const std::byte>> source(std::uint32_t r) {
    const std::uint64_t size = from_size;
    if (r < raw_begin || r - raw_begin >= n_raw) {
      const std::uint64_t fit = std::max<std::uint64_t>(1, kReadBytes / std::max<std::uint64_t>(1, size));
      raw_begin = r;
      n_raw = static_cast<std::uint32_t>(std::min<std::uint64_t>(fit, end - r));
      room->raw.resize(n_raw * size);
      QSF_TRY(tensor.rows_of(raw_begin, n_raw, room->raw));
    }
    return std::span<const std::byte>(room->raw).subspan((r - raw_begin) * size, size);
  }
  /// Returns the row of the source for row r of the file.
  std::uint32_t from_row(std::uint32_t r) const { return rows == 1 ? r : heads.stored_row(r); }

  Status check(std::uint32_t row, std::span<const float> floats) const {
    const bool narrow = to.id == FormatId::f16 || to.scale.type == Scale::f16 || to.rounding == Rounding::elsewhere;
    QSF_TRY(check_finite(tensor.name, row, floats));
    for (const float w : floats) {
      if (narrow && !std::isfinite(f16_to_f32(f32_to_f16(w)))) {
        return make_error(ErrorCode::bad_input,
                          "tensor {:.100} holds {} in row {}, which {} cannot hold: convert with f32 or bf16",
                          tensor.name, w, row, to.name);
      }
    }
    return {};
  }

  /// Checks a row that is copied: the scales and minima of its blocks, or its weights if they are floats or packed.
  Status check_blocks(std::uint32_t row, std::span<const std::byte> blocks) const {
    const Format& format = to;
    if (!format.quantized() || format.grid == Grid::iq1_m) {  // whose scale has no field
      std::vector<float> weights(cols);
      dequantize_row(format, blocks, weights);
      return check_finite(tensor.name, row, weights);
    }
    const float reach = reach_of(format);
    for (std::uint32_t column = 0; !blocks.empty(); column += format.block) {
      const float scale = number_of(format.scale, blocks.data()), minimum = number_of(format.minimum, blocks.data());
      if (!std::isfinite(scale * reach) || !std::isfinite(minimum)) {
        return make_error(ErrorCode::bad_input, "tensor {:.100} has the {} {} in row {}, from column {} on",
                          tensor.name, std::isfinite(minimum) ? "scale" : "minimum",
                          std::isfinite(minimum) ? scale : minimum, row, column);
      }
      blocks = blocks.subspan(format.block_bytes);
    }
    return {};
  }

  /// Converts rows [r, r + n) of the file from the bytes that were read. May run on any thread that has its own `all`.
  Status some(std::uint32_t r, std::uint32_t n, std::span<const std::byte> stored, std::span<std::byte> out,
              std::vector<float>& all) const {
    const std::size_t size = from_size, to_size = row_bytes(to, cols);
    if (copies) {
      for (std::uint32_t i = 0; i < n; ++i) QSF_TRY(check_blocks(r + i, stored.subspan(i * size, size)));
      std::ranges::copy(stored, out.begin());
      return {};
    }
    all.resize(std::size_t{n} * cols);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::span<float> floats = std::span(all).subspan(std::size_t{i} * cols, cols);
      dequantize_row(from, stored.subspan(i * size, size), floats);
      QSF_TRY(check(r + i, floats));
    }
    if (rows == 1 && heads.dim != 0) {
      const std::vector<float> read = all;
      for (std::uint32_t c = 0; c < cols; ++c) all[c] = read[heads.stored_row(c)];
    }
    if (cost != nullptr || to.rounding == Rounding::elsewhere) {
      (cost != nullptr ? *cost : RowCost::plain(cols)).quantize(to, all, out);
      return {};
    }
    for (std::size_t i = 0; i < n; ++i) {
      quantize_row(to, std::span(all).subspan(i * cols, cols), out.subspan(i * to_size, to_size));
    }
    return {};
  }

  /// Converts rows [begin, begin + n). The caller's thread reads several at once and divides them among the workers.
  /// Returns the first row's error.
  Status all(std::uint32_t begin, std::uint32_t n, const Workers& workers, std::span<std::byte> out) {
    const std::uint64_t size = row_bytes(to, cols);
    if (copies && heads.dim != 0) {  // in another order
      for (std::uint32_t i = 0; i < n; ++i) {
        QSF_LET(row, source(from_row(begin + i)));
        QSF_TRY(check_blocks(begin + i, row));
        std::ranges::copy(row, out.begin() + static_cast<std::ptrdiff_t>(i * size));
      }
      return {};
    }
    const auto most = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kReadBytes / from_size, 1, kMostRows));
    std::vector<std::byte>& read = room->read;
    std::vector<Status>& done = room->done;
    read.resize(std::min(most, n) * from_size);
    done.resize(std::max<std::size_t>(done.size(), std::min(most, n) / kTogether + 1));
    for (std::uint32_t at = 0; at < n; at += most) {
      const std::uint32_t here = std::min(most, n - at);
      for (std::uint32_t i = 0; i < here; ++i) {
        QSF_LET(stored_row, source(from_row(begin + at + i)));
        std::ranges::copy(stored_row, read.begin() + static_cast<std::ptrdiff_t>(i * from_size));
      }
      const std::uint32_t parts = (here + kTogether - 1) / kTogether;
      parallel_for(workers, parts, [&](std::uint32_t part) {
        const std::uint32_t i = part * kTogether, together = std::min(kTogether, here - i);
        std::vector<float> own;
        done[part] = some(begin + at + i, together,
                          std::span<const std::byte>(read).subspan(i * from_size, together * from_size),
                          out.subspan((at + i) * size, together * size), workers.count < 2 ? room->floats : own);
      });
      for (std::uint32_t part = 0; part < parts; ++part) QSF_TRY(done[part]);
    }
    return {};
  }
};

}  // namespace

RowRoom RowRooms::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return {};
  RowRoom room = std::move(free_.back());
  free_.pop_back();
  return room;
}

void RowRooms::give(RowRoom room) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(room));
}

std::uint32_t rotated_heads(Role role, const LayerKind& kind) {
  switch (role) {
    case Role::attn_q:
    case Role::attn_k:
    case Role::attn_q_bias:
    case Role::attn_k_bias:
    case Role::attn_q_norm:
    case Role::attn_k_norm:
    case Role::attn_q_norm_all:
    case Role::attn_k_norm_all:
      return kind.head_dim;
    case Role::latent_q_rope:
    case Role::latent_k_rope:
      return kind.rope_dims;
    default:
      return 0;
  }
}

ConvertedRows rows_as(const LoadedTensor& tensor, FormatId target, std::uint32_t rows, std::uint32_t cols,
                      RotatedHeads interleaved, RowWork work) {
  const Format& from = *find_format(tensor.format);
  const Format& to = format_of(target);
  const bool vector = rows == 1, turned = vector && interleaved.dim != 0;
  const bool copies = &from == &to && !turned;
  const std::uint32_t head = vector ? 0 : interleaved.dim;
  // The rows of a head are read together, because their order changes.
  const auto end_of = [rows, head](std::uint32_t begin, std::uint32_t n) {
    const std::uint64_t end = std::uint64_t{begin} + n;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(head == 0 ? end : (end + head - 1) / head * head, rows));
  };
  const auto conversion = [&tensor, &from, &to, rows, cols, interleaved, copies] {
    RowConversion out{.tensor = tensor, .from = from, .to = to, .rows = rows, .cols = cols};
    out.heads = interleaved;
    out.copies = copies;
    out.from_size = std::max<std::uint64_t>(1, row_bytes(from, cols));
    return out;
  };
  const auto read = [conversion, end_of, work = std::move(work)](std::uint32_t begin, std::uint32_t n,
                                                                 std::span<std::byte> out) -> Status {
    RowConversion rows_of = conversion();
    RowRoom room = work.rooms->take();
    rows_of.room = &room;
    rows_of.cost = work.cost_of && rows_of.to.quantized() ? work.cost_of() : nullptr;
    rows_of.end = end_of(begin, n);
    const Status status = rows_of.all(begin, n, work.workers, out);
    work.rooms->give(std::move(room));
    return status;
  };
  const auto runs = [&tensor, copies, head, end_of](std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& out) {
    const std::uint32_t first = head == 0 ? begin : begin / head * head;
    const RowsFrom read_from = tensor.rows_of.runs(first, end_of(begin, n) - first, out);
    const bool whole = copies && (head == 0 || read_from == RowsFrom::stored);
    return weaker(read_from, !whole ? RowsFrom::runs : head == 0 ? RowsFrom::stored : RowsFrom::reordered);
  };
  const auto check = [conversion](std::uint32_t begin, std::uint32_t n, std::span<const std::byte> bytes) -> Status {
    const RowConversion rows_of = conversion();
    const std::size_t size = rows_of.from_size;
    for (std::uint32_t r = 0; r < n; ++r) {
      QSF_TRY(rows_of.check_blocks(begin + r, bytes.subspan(r * size, size)));
    }
    return {};
  };
  return {{read, runs}, check, copies ? RotatedHeads{head, interleaved.rotated} : RotatedHeads{}};
}

}  // namespace qsf::convert
