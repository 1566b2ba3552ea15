#include "native/host/speed.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>

#include "native/host/kernel_speeds.h"
#include "native/sources/clock.h"
#include "qsf/base/try.h"
#include "qsf/engine.h"
#include "qsf/file/reader.h"
#include "qsf/file/roles.h"

namespace qsf {
namespace {

constexpr std::uint32_t kDepth = 8;        // reads under way: more than most storage needs
constexpr std::uint32_t kCachedDepth = 3;  // for the page cache: as many as a ring has slots, so that caches hold them
constexpr double kCachedLatency = 0.4e-3;  // seconds that a MiB takes from there, at most
constexpr std::uint64_t kRead = 512u << 20;  // bytes, at most
constexpr std::size_t kLeast = 256u << 10;   // bytes of memory
constexpr double kEnough = 0.25;             // seconds
constexpr double kLeastShare = 0.1;          // of the bytes, for a format that counts

/// Reads that are under way or settled.
class Reads {
 public:
  Reads(Source& source, ThreadPool& pool) : source_(source), pool_(pool) {}

  /// Reads into one of the places of `size` bytes that no other read uses. Fewer than kDepth reads may be under way.
  void ask(std::uint64_t offset, std::uint64_t size, std::span<std::byte> memory) {
    std::uint32_t place = 0;
    while (busy_[place]) ++place;
    busy_[place] = true;
    ReadRequest request;
    request.offset = offset;
    request.size = static_cast<std::uint32_t>(size);
    request.ticket = place;
    request.into = memory.data() + place * size;
    request.blocks = (reinterpret_cast<std::uintptr_t>(request.into) | offset | size) % kBlock == 0;
    asked_ += source_.submit({&request, 1});
  }
  std::uint64_t asked() const { return asked_; }
  std::uint64_t settled() const { return settled_; }
  std::uint64_t under_way() const { return asked_ - settled_; }
  Status status() const {
    return failed_ ? make_error(ErrorCode::io_error, "the model file could not be read") : Status();
  }
  /// Waits a second at most until one more is settled, or helps with cached reads, as a host does.
  void wait() {
    if (source_.at_hand() != 0) {
      pool_.run([](void* reads, std::uint32_t) { static_cast<Reads*>(reads)->help(); }, this, pool_.count());
      return;
    }
    const std::size_t n = source_.reap(done_, std::chrono::seconds(1));
    for (Completion& c : std::span(done_).first(n)) {
      if (source_.finish(c)) settle(c);
    }
  }

 private:
  void help() {
    Completion c;
    for (Helped helped = Helped::some; helped != Helped::nothing;) {
      helped = source_.read_cached(c);
      if (helped == Helped::last) settle(c);
    }
  }
  void settle(const Completion& c) {
    if (!c.status) failed_ = true;
    busy_[c.ticket] = false;
    ++settled_;
  }

  Source& source_;
  ThreadPool& pool_;
  std::array<Completion, kDepth> done_{};
  std::array<std::atomic<bool>, kDepth> busy_{};
  std::uint64_t asked_ = 0;
  std::atomic<std::uint64_t> settled_{0};
  std::atomic<bool> failed_{false};
};

/// Reads into the first bytes of `memory`, which must be large enough.
Result<std::span<const std::byte>> read_at(Source& source, std::uint64_t offset, std::uint64_t size,
                                           std::span<std::byte> memory, ThreadPool& pool) {
  Reads reads(source, pool);
  reads.ask(offset, size, memory);
  while (reads.under_way() != 0) reads.wait();
  QSF_TRY(reads.status());
  return std::span<const std::byte>(memory.first(static_cast<std::size_t>(size)));
}

/// Returns the median rate in bytes per second, which is the one to expect; 0 on failure.
double time_product(FormatId format, std::string_view isa, std::span<std::byte> weights, ThreadPool& pool) {
  std::array<double, 5> rates{};
  std::size_t n = 0;
  const Clock::time_point start = Clock::now();
  for (bool warm = false; n < rates.size() && (n < 1 || seconds_since(start) < kEnough); warm = true) {
    const Result<double> rate = product_rate(weights, format, Batch::one, isa, pool);
    if (!rate) return 0;
    if (warm) rates[n++] = *rate;  // the first brings code into the caches
  }
  std::sort(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(n));
  return rates[n / 2];
}

}  // namespace

std::uint32_t ReadSpeed::slots(std::uint32_t most) const {
  if (piece == 0) return 0;
  const double under_way = std::ceil(rate * latency / static_cast<double>(piece));
  return static_cast<std::uint32_t>(std::min(1 + under_way, static_cast<double>(most)));
}

Result<ReadSpeed> measure_reading(Source& source, std::span<std::byte> memory, ThreadPool& pool) {
  if (memory.size() < kLeast || source.size() < kHeaderSize) return ReadSpeed{};
  QSF_LET(front, read_at(source, 0, kHeaderSize, memory, pool));
  // An aligned file is read directly into place, other files through buffers.
  const Result<Header> header = read_header(front, source.size());
  const std::uint64_t step = header && (header->flags & kFlagAligned) != 0 ? kBlock : 1;
  ReadSpeed out;
  out.piece = std::min<std::uint64_t>({1u << 20, memory.size() / kDepth, source.size()}) / step * step;
  if (out.piece == 0) return ReadSpeed{};
  const std::uint64_t total = std::min(kRead, source.size()) / out.piece;
  const std::uint64_t begin = (source.size() - total * out.piece) / 2 / step * step;
  std::ranges::fill(memory.first(kDepth * out.piece), std::byte{0});  // the system provides pages when they are written
  Reads reads(source, pool);
  std::uint64_t depth = 1;
  const Clock::time_point start = Clock::now();
  Clock::time_point together = start;  // from when on several reads may be under way
  do {
    while (reads.asked() < total && reads.under_way() < depth && seconds_since(start) < kEnough) {
      reads.ask(begin + reads.asked() * out.piece, out.piece, memory);
    }
    reads.wait();
    if (depth != 1 || reads.settled() == 0) continue;
    out.latency = seconds_since(start);
    together = Clock::now();
    depth = out.latency < kCachedLatency ? kCachedDepth : kDepth;
  } while (reads.under_way() != 0 || (reads.asked() < total && seconds_since(start) < kEnough));
  QSF_TRY(reads.status());
  const std::uint64_t alone = reads.settled() > 1 ? 1 : 0;
  const double seconds = seconds_since(alone != 0 ? together : start);
  out.rate = static_cast<double>((reads.settled() - alone) * out.piece) / std::max(seconds, 1e-9);
  return out;
}

Result<std::vector<FormatShare>> formats_of(Source& source, std::span<std::byte> memory, ThreadPool& pool) {
  std::vector<FormatShare> out;
  if (memory.size() < kLeast || source.size() < kHeaderSize) return out;
  QSF_LET(front, read_at(source, 0, kHeaderSize, memory, pool));
  QSF_LET(header, read_header(front, source.size()));
  std::vector<SectionEntry> sections(header.n_sections);
  const std::uint64_t directory = std::uint64_t{header.n_sections} * kSectionEntrySize;
  if (directory > memory.size()) return out;
  QSF_LET(entries, read_at(source, header.directory_offset, directory, memory, pool));
  QSF_TRY(read_directory(header, entries, source.size(), sections));
  const SectionEntry* const section = find_section(sections, kTagTensors);
  if (section == nullptr || section->size > memory.size()) return out;
  QSF_LET(table, read_at(source, section->offset, section->size, memory, pool));
  QSF_TRY(check_section(*section, table));
  std::vector<TensorEntry> tensors(table.size() / kTensorEntrySize);
  QSF_TRY(read_tensors(header, table, tensors));
  double all = 0;
  for (const TensorEntry& t : tensors) {
    if (!rule_of(t.role).matrix) continue;
    const auto bytes = static_cast<double>(t.rows * row_bytes(*find_format(t.format), t.cols));
    const auto same = std::ranges::find(out, t.format, &FormatShare::format);
    if (same == out.end()) {
      out.push_back({t.format, bytes});
    } else {
      same->share += bytes;
    }
    all += bytes;
  }
  for (FormatShare& format : out) format.share /= std::max(all, 1.0);
  std::erase_if(out, [](const FormatShare& format) { return format.share < kLeastShare; });
  std::ranges::sort(out, std::ranges::greater(), &FormatShare::share);
  return out;
}

Result<double> measure_computing(std::span<const FormatShare> formats, std::span<std::byte> memory,
                                 const std::function<std::string_view(FormatId)>& isa_of, ThreadPool& pool) {
  if (memory.size() < kLeast) return 0.0;
  const std::span<std::byte> weights = memory.first(std::min(memory.size(), KernelSpeeds::kWeights));
  std::ranges::fill(weights, std::byte{0});
  double seconds = 0, share = 0;  // for each byte
  for (const FormatShare& format : formats) {
    const double rate = time_product(format.format, isa_of(format.format), weights, pool);
    if (rate == 0) return 0.0;
    seconds += format.share / rate;
    share += format.share;
  }
  return share > 0 ? share / seconds : 0;
}

}  // namespace qsf
