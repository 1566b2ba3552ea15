#include "wasm/instance.h"

#include <emscripten.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "qsf/base/checksum.h"

namespace qsf::wasm {
namespace {

/// The value of that number; empty for a number that has none.
template <class T>
std::optional<T> chosen(std::int32_t number, std::size_t count) {
  if (number < 0 || static_cast<std::size_t>(number) >= count) return {};
  return static_cast<T>(number);
}

struct PlannedSegment : SegmentEntry {
  bool pinned;
};

void put(RowWriter row, const ReadRequest& of) {
#define QSF_READ_FIELD(type, name, js, meaning) row.put(of.name);
#include "qsf/base/boundary.def"
}

void put(RowWriter row, const Stats& of) {
#define QSF_STAT(type, name, js, meaning) row.put(of.name);
#include "qsf/base/boundary.def"
}

void put(RowWriter row, const SequenceStats& of) {
#define QSF_SEQUENCE_STAT(type, name, js, meaning) row.put(of.name);
#include "qsf/base/boundary.def"
}

void put(RowWriter row, const MemoryRegion& of) {
#define QSF_REGION_FIELD(type, name, js, meaning) row.put(of.name);
#include "qsf/base/boundary.def"
}

void put(RowWriter row, const KernelCount& of) {
#define QSF_KERNEL_FIELD(type, name, js, meaning) row.put(of.name);
#include "qsf/base/boundary.def"
}

void put(RowWriter row, const PlannedSegment& of) {
#define QSF_SEGMENT_FIELD(type, name, js, meaning) row.put(of.name);
#include "qsf/base/boundary.def"
}

/// False behind the last.
template <class Row>
bool put_at(Mailbox& mailbox, std::span<const Row> all, std::uint32_t index) {
  if (index >= all.size()) return false;
  put(RowWriter(mailbox), all[index]);
  return true;
}

}  // namespace

Instance::~Instance() {
  threads_.end();
  std::free(staging_.data());
  std::free(arena_.data());
}

std::uint32_t Instance::code(const Error& error) {
  last_error_ = error;
  return static_cast<std::uint32_t>(error.code);
}

std::uint32_t Instance::open(double budget, double file_size, std::int32_t kv) {
  if (arena_.empty()) {
    const auto size = whole<std::size_t>(budget - static_cast<double>(kHostReserve));
    void* block = size != 0 ? std::aligned_alloc(kAlignment, size) : nullptr;
    if (block == nullptr) {
      return code(
          make_error(ErrorCode::budget_too_small, "a budget of {:.0f} bytes leaves no room for an arena", budget));
    }
    arena_ = {static_cast<std::byte*>(block), size};
  }
  OpenOptions options;
  RowReader row(mailbox_);
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) options.name = row.take<boundary::type>();
#include "qsf/base/boundary.def"
  options.kv = chosen<KvType>(kv, kKvNames.size());
  options.workers = threads_.workers();
  const Result<Session*> opened = open_session(arena_, whole<std::uint64_t>(file_size), options);
  if (!opened) return code(opened.error());
  session_ = *opened;
  request_.reset();
  return 0;
}

/// Steps for about a millisecond while there is nothing but work: a call from JavaScript costs as much as a small step,
/// and so does a look at the clock.
std::uint32_t Instance::step() {
  constexpr double kMilliseconds = 1;
  const double begin = emscripten_get_now();
  double now = begin;
  Step step = session_->step();
  for (double last = begin;;) {
    for (std::uint32_t i = 0; i < steps_ && step == Step::working && !request_; ++i) {
      request_ = session_->next_request();
      if (!request_) step = session_->step();
    }
    now = emscripten_get_now();
    if (step != Step::working || request_ || now - begin > kMilliseconds) break;
    steps_ = now - last < kMilliseconds / 8 ? steps_ + 1 : (steps_ + 1) / 2;
    last = now;
  }
  threads_.stepped(step, (now - begin) / 1000);
  if (step == Step::error) last_error_ = session_->error();
  return static_cast<std::uint32_t>(step);
}

bool Instance::next_request() {
  const std::optional<ReadRequest> request = request_ ? std::exchange(request_, {}) : session_->next_request();
  if (!request) return false;
  put(RowWriter(mailbox_), *request);
  return true;
}

std::uint32_t Instance::crc32(const std::byte* at, std::uint32_t size) const {
  const std::size_t begin = at - arena_.data();
  if (begin > arena_.size() || size > arena_.size() - begin) return 0;
  return qsf::crc32(arena_.subspan(begin, size));
}

void Instance::fail(std::uint32_t ticket, std::uint32_t error, std::uint32_t size) {
  session_->fail(ticket, make_error(static_cast<ErrorCode>(error), "{}", staged(0, size)));
}

std::byte* Instance::stage(std::uint32_t size) {
  std::free(staging_.data());
  void* room = std::malloc(size);
  staging_ = {static_cast<std::byte*>(room), room == nullptr ? 0 : size};
  return staging_.data();
}

std::string_view Instance::staged(std::size_t begin, std::size_t size) const {
  const std::span<std::byte> rest = staging_.subspan(std::min(begin, staging_.size()));
  return {reinterpret_cast<const char*>(rest.data()), std::min(size, rest.size())};
}

std::span<const std::uint32_t> Instance::staged_tokens(std::size_t n) const {
  return {reinterpret_cast<const std::uint32_t*>(staging_.data()), std::min(n, staging_.size() / 4)};
}

std::uint32_t Instance::start(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens,
                              std::uint32_t stops_size) {
  Prompt prompt;
  prompt.text = staged(0, text_size);
  prompt.tokens = staged_tokens(n_tokens);
  std::array<std::string_view, 16> stops;  // more than the engine takes: it says so itself
  std::size_t n_stops = 0;
  std::string_view rest = staged(text_size != 0 ? text_size : prompt.tokens.size_bytes(), stops_size);
  for (; !rest.empty() && n_stops < stops.size(); ++n_stops) {
    stops[n_stops] = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(stops[n_stops].size() + 1, rest.size()));
  }
  prompt.stops = {stops.data(), n_stops};
  RowReader row(mailbox_);
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) \
  prompt.sampler.name = row.take<boundary::type>();
#include "qsf/base/boundary.def"
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) prompt.name = row.take<boundary::type>();
#include "qsf/base/boundary.def"
  return code(session_->start(prompt, sequence));
}

std::uint32_t Instance::embed(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens,
                              std::int32_t pooling, std::int32_t normalize) {
  EmbedPrompt prompt;
  prompt.text = staged(0, text_size);
  prompt.tokens = staged_tokens(n_tokens);
  RowReader row(mailbox_);
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) prompt.name = row.take<boundary::type>();
#include "qsf/base/boundary.def"
  prompt.pooling = chosen<Pooling>(pooling, kPoolingNames.size());
  if (normalize >= 0) prompt.normalize = normalize != 0;
  return code(session_->embed(prompt, sequence));
}

void Instance::embedding() {
  const std::span<const float> values = session_->embedding();
  tell(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

std::int32_t Instance::tokenize(std::uint32_t text_size, bool special) {
  const std::string_view text = staged(0, text_size);
  const std::size_t behind = std::min((text.size() + 3) / 4 * 4, staging_.size());
  const std::span<std::byte> room = staging_.subspan(behind);
  const std::span<std::uint32_t> out(reinterpret_cast<std::uint32_t*>(room.data()), room.size() / 4);
  const Result<std::uint32_t> n = session_->tokenize(text, special, out);
  if (!n) return -static_cast<std::int32_t>(code(n.error()));
  tell(out.data());
  return static_cast<std::int32_t>(*n);
}

void Instance::stats() { put(RowWriter(mailbox_), session_->stats()); }

void Instance::sequence_stats(std::uint32_t sequence) { put(RowWriter(mailbox_), session_->sequence_stats(sequence)); }

bool Instance::memory_region(std::uint32_t index) { return put_at(mailbox_, session_->memory_map(), index); }

bool Instance::kernel_count(std::uint32_t index) { return put_at(mailbox_, session_->kernel_counts(), index); }

bool Instance::segment(std::uint32_t index) {
  const std::span<const SegmentEntry> all = session_->segments();
  if (index >= all.size()) return false;
  put(RowWriter(mailbox_), PlannedSegment{all[index], session_->is_pinned(index)});
  return true;
}

}  // namespace qsf::wasm
