#include "converter/made/made_file.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "converter/plan/type_notes.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

std::uint64_t row_bytes_of(const TensorEntry& t) { return row_bytes(*find_format(t.format), t.cols); }

/// Returns the rows of a slice of at most so many bytes: whole strips, at least one.
std::uint32_t rows_of_slice(const TensorEntry& t, std::uint64_t most) {
  const std::uint64_t strips = most / row_bytes_of(t) / kTileRows;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(strips, 1, t.rows / kTileRows + 1)) * kTileRows;
}

/// Whether a step stages the rows' runs.
bool is_staged(RowsFrom from) { return from == RowsFrom::runs || from == RowsFrom::reordered; }

/// Whether rows are copied in slices. Others are computed, or read to their place.
bool has_slices(const TensorEntry& t, RowsFrom from) {
  return from == RowsFrom::reordered || (from == RowsFrom::stored && t.layout == Layout::tiles);
}

std::uint64_t bytes_of_runs(std::span<const InputRun> runs) {
  std::uint64_t sum = 0;
  for (const InputRun& run : runs) sum += run.size;
  return sum;
}

}  // namespace

Result<std::unique_ptr<MadeFile>> MadeFile::plan(LoadedModel model, const Options& options) {
  TypeNotes notes;
  QSF_LET(spec, plan_file(model, options, &notes));
  model.tokenizer.reset();
  std::vector<std::string> warnings = std::move(model.warnings);
  std::ranges::move(notes.warnings(), std::back_inserter(warnings));
  QSF_LET(plan, FilePlan::make(std::move(spec)));
  std::unique_ptr<MadeFile> out(new MadeFile(std::move(plan), std::move(model.tensors), std::move(warnings)));
  QSF_LET(front, out->plan_.tables(out->plan_.segments(), out->plan_.size()));
  const std::vector<std::byte> rest = out->plan_.take_rest();
  front.insert(front.end(), rest.begin(), rest.end());
  out->front_ = std::move(front);
  return out;
}

Result<std::unique_ptr<MadeFile>> MadeFile::restore(LoadedModel model, const Options& options, const KeptFront& kept) {
  TypeNotes notes;
  QSF_LET(spec, plan_file(model, options, &notes));
  QSF_LET(plan, FilePlan::restore(std::move(spec), kept.front, kept.size));
  if (kept.checked.size() != plan.segments().size()) {
    return make_error(ErrorCode::bad_input, "{} segments are checked, but the front has {}", kept.checked.size(),
                      plan.segments().size());
  }
  std::unique_ptr<MadeFile> out(new MadeFile(std::move(plan), std::move(model.tensors), notes.warnings()));
  for (std::size_t i = 0; i < kept.checked.size(); ++i) {
    if (kept.checked[i] == 0) continue;
    out->crcs_[i] = out->plan_.segments()[i].crc;
    out->checks_[i] = Check::kept;
  }
  return out;
}

MadeFile::MadeFile(FilePlan plan, std::vector<LoadedTensor> tensors, std::vector<std::string> warnings)
    : tensors_(std::move(tensors)),
      plan_(std::move(plan)),
      warnings_(std::move(warnings)),
      checks_(plan_.segments().size()),
      crcs_(plan_.segments().size()) {
  std::vector<InputRun> runs;
  for (std::uint32_t i = 0; i < plan_.tensors().size(); ++i) {
    const TensorEntry& t = plan_.tensors()[i];
    runs.clear();
    const RowsFrom from = runs_of(i, 0, std::min(strip_rows(t.layout), t.rows), runs);
    reads_anywhere_ |= from == RowsFrom::anywhere && rule_of(t.role).matrix;
    if (is_staged(from)) least_staged_ = std::max(least_staged_, bytes_of_runs(runs));
  }
}

std::vector<std::byte> MadeFile::take_front() { return std::exchange(front_, {}); }

Result<std::vector<std::byte>> MadeFile::tables(std::vector<std::uint8_t>& checked) const {
  std::vector<SegmentEntry> segments(plan_.segments().begin(), plan_.segments().end());
  checked.assign(segments.size(), 0);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool known = checks_[i].load(std::memory_order_acquire) != Check::unknown;
    segments[i].crc = known ? crcs_[i] : 0;
    checked[i] = known ? 1 : 0;
  }
  return plan_.tables(segments, plan_.size());
}

std::uint32_t MadeFile::n_unchecked() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(checks_, [](const auto& check) { return check.load() == Check::unknown; }));
}

std::vector<std::uint32_t> MadeFile::inputs() const {
  std::set<std::uint32_t> all;
  std::vector<InputRun> runs;
  for (std::uint32_t i = 0; i < plan_.tensors().size(); ++i) {
    runs.clear();
    runs_of(i, 0, plan_.tensors()[i].rows, runs);
    for (const InputRun& run : runs) all.insert(run.input);
  }
  return {all.begin(), all.end()};
}

std::uint64_t MadeFile::memory() const {
  constexpr std::uint64_t kOfTensor = 1200;  // its names, shapes and functions
  return plan_.tensors().size() * kOfTensor + plan_.segments().size() * (sizeof(SegmentEntry) + 8) +
         tensors_.size() * (sizeof(LoadedTensor) + 200);
}

RowsFrom MadeFile::runs_of(std::uint32_t tensor, std::uint32_t begin, std::uint32_t n,
                           std::vector<InputRun>& runs) const {
  const TensorSpec& spec = plan_.sources()[tensor];
  return spec.runs_of ? spec.runs_of(begin, n, runs) : RowsFrom::anywhere;
}

void MadeFile::add_part(const Part& part, Step& step) const {
  Part added = part;
  added.first_run = static_cast<std::uint32_t>(step.runs.size());
  added.size = part.n * row_bytes_of(plan_.tensors()[part.tensor]);
  added.from = runs_of(part.tensor, part.begin, part.n, step.runs);
  if (added.from == RowsFrom::anywhere) step.runs.resize(added.first_run);
  added.n_runs = static_cast<std::uint32_t>(step.runs.size()) - added.first_run;
  step.anywhere |= added.from == RowsFrom::anywhere;
  if (is_staged(added.from)) step.staged += bytes_of_runs(std::span(step.runs).subspan(added.first_run));
  step.parts.push_back(added);
}

void MadeFile::next_step(std::uint32_t segment, std::uint64_t most, Step& step) const {
  const std::optional<FilePlan::Rows> rows = plan_.rows_of(segment);
  const std::span<const TensorEntry> tensors = plan_.tensors();
  // The first tensor or row that no step has yet.
  std::uint32_t next = rows ? rows->begin : plan_.first_tensor(segment);
  if (!step.parts.empty()) {
    const Part& before = step.parts.back();
    next = rows ? before.begin + before.n : before.tensor + 1;
  }
  const auto clear = [&] {
    step.parts.clear();
    step.runs.clear();
    step.staged = 0;
    step.anywhere = step.last = false;
  };
  clear();
  if (!rows) {
    for (; next < tensors.size() && tensors[next].first_segment == segment; ++next) {
      const TensorEntry& t = tensors[next];
      add_part({.tensor = next, .n = t.rows, .at = t.raw_offset - plan_.segments()[segment].raw_begin}, step);
      if (step.staged >= most) {
        ++next;
        break;
      }
    }
    step.last = next == tensors.size() || tensors[next].first_segment != segment;
    return;
  }
  const TensorEntry& t = tensors[rows->tensor];
  const std::uint64_t row = row_bytes_of(t);
  const std::uint32_t strip = strip_rows(t.layout), end = rows->begin + rows->n;
  for (std::uint32_t n = end - next;;) {
    clear();
    add_part({.tensor = rows->tensor, .begin = next, .n = n, .at = rows->at + (next - rows->begin) * row}, step);
    if (step.staged <= most || n <= strip) break;
    const auto fit = static_cast<std::uint32_t>(n * (static_cast<double>(most) / static_cast<double>(step.staged)));
    n = std::max(strip, std::min(fit, n - 1) / strip * strip);
  }
  step.last = step.parts.front().begin + step.parts.front().n == end;
}

Status MadeFile::make(std::uint32_t segment, const Step& step, std::span<std::byte> raw, FilePlan::Room& room) const {
  const bool first = checks_[segment].load(std::memory_order_acquire) != Check::done;
  for (const Part& part : step.parts) {
    const TensorEntry& t = plan_.tensors()[part.tensor];
    const TensorSpec& source = plan_.sources()[part.tensor];
    const std::span<std::byte> rows = raw.subspan(part.at, part.size);
    if (part.from != RowsFrom::stored) {
      QSF_TRY(source.rows_of(part.begin, part.n, rows));
    } else if (first && source.check) {
      QSF_TRY(source.check(part.begin, part.n, rows));
    }
    if (rule_of(t.role).matrix) plan_.arrange(part.tensor, part.n, raw.subspan(part.at), room);
    if (t.first_segment == segment && part.begin == 0) plan_.put_frame(part.tensor, raw);
  }
  return {};
}

std::uint64_t MadeFile::slice_bytes(std::uint64_t most) const {
  std::uint64_t out = 0;
  std::vector<InputRun> runs;
  for (std::uint32_t i = 0; i < plan_.tensors().size(); ++i) {
    const TensorEntry& t = plan_.tensors()[i];
    runs.clear();
    if (!rule_of(t.role).matrix || !has_slices(t, runs_of(i, 0, std::min(kTileRows, t.rows), runs))) continue;
    const std::uint64_t others = 2 * std::uint64_t{plan_.sources()[i].heads.dim};  // rows of the first and last head
    out = std::max(out, std::min<std::uint64_t>(rows_of_slice(t, most) + others, t.rows) * row_bytes_of(t));
  }
  return out;
}

bool MadeFile::next_slice(std::uint32_t segment, std::uint64_t most, Slice& slice) const {
  const std::optional<FilePlan::Rows> rows = plan_.rows_of(segment);
  if (!rows) return false;
  const TensorEntry& t = plan_.tensors()[rows->tensor];
  const std::uint32_t head = plan_.sources()[rows->tensor].heads.dim;
  const std::uint32_t begin = slice.n == 0 ? rows->begin : slice.begin + slice.n;
  std::uint32_t end = begin + rows_of_slice(t, most);
  // A slice ends with a head if it can, so that no head is read twice.
  if (head != 0 && end / head * head > begin && head % kTileRows == 0) end = end / head * head;
  slice.tensor = rows->tensor;
  slice.begin = begin;
  slice.n = std::min(end, rows->begin + rows->n) - begin;
  slice.at = rows->at + (begin - rows->begin) * row_bytes_of(t);
  slice.last = begin + slice.n == rows->begin + rows->n;
  slice.runs.clear();
  const RowsFrom from = runs_of(slice.tensor, begin, slice.n, slice.runs);
  return has_slices(t, from);
}

Status MadeFile::make(std::uint32_t segment, const Slice& slice, std::span<const std::byte> stored,
                      std::span<std::byte> raw) const {
  const bool first = checks_[segment].load(std::memory_order_acquire) != Check::done;
  const TensorEntry& t = plan_.tensors()[slice.tensor];
  const TensorSpec& source = plan_.sources()[slice.tensor];
  const std::uint64_t row = row_bytes_of(t);
  const std::uint32_t head = std::max(1u, source.heads.dim), stored_begin = slice.begin / head * head;
  std::array<const std::byte*, kTileRows> rows;
  for (std::uint32_t at = 0; at < slice.n; at += kTileRows) {
    const std::uint32_t n = std::min(kTileRows, slice.n - at);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t r = slice.begin + at + i;
      const std::span<const std::byte> of = stored.subspan((source.heads.stored_row(r) - stored_begin) * row, row);
      if (first && source.check) QSF_TRY(source.check(r, 1, of));
      rows[i] = of.data();
    }
    plan_.arrange(slice.tensor, std::span(rows).first(n), raw.subspan(slice.at + at * row));
  }
  if (t.first_segment == segment && slice.begin == 0) plan_.put_frame(slice.tensor, raw);
  return {};
}

Status MadeFile::seal(std::uint32_t segment, std::span<const std::byte> raw) {
  std::atomic<Check>& check = checks_[segment];
  const Check before = check.load(std::memory_order_acquire);
  if (before == Check::done) return {};
  const std::uint32_t crc = crc32(raw);
  if (before == Check::kept && crc != crcs_[segment]) {
    return make_error(ErrorCode::bad_checksum,
                      "segment {} has CRC-32 {:08x}, but {:08x} when the model's files were read first: their bytes "
                      "have changed, though not their size and date",
                      segment, crc, crcs_[segment]);
  }
  crcs_[segment] = crc;
  check.store(Check::done, std::memory_order_release);
  return {};
}

}  // namespace qsf::convert
