#include "wasm/instance.h"

#include <emscripten.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "qsf/base/checksum.h"

namespace qsf::wasm {
namespace {

Address address(const void* at) { return static_cast<Address>(reinterpret_cast<std::uintptr_t>(at)); }
template <class T>
T* pointer(Address at) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(at));
}
Text text(std::string_view view) { return {address(view.data()), static_cast<std::uint32_t>(view.size())}; }

val value(std::uint32_t number) { return val(number); }
val value(std::uint64_t number) { return val(static_cast<double>(number)); }
val value(float number) { return val(number); }
val value(std::string_view name) { return val(std::string(name)); }
val value(KvType type) { return value(kKvNames[static_cast<std::size_t>(type)]); }

}  // namespace

Instance::~Instance() {
  threads_.end();
  std::free(staging_);
  std::free(arena_.data());
}

std::uint32_t Instance::code(const Error& error) {
  last_error_ = error;
  return static_cast<std::uint32_t>(error.code);
}

std::uint32_t Instance::open(const Open& o) {
  const double size = o.budget - static_cast<double>(kHostReserve);
  if (arena_.empty()) {
    void* block = size > 0 ? std::aligned_alloc(kAlignment, static_cast<std::size_t>(size)) : nullptr;
    if (block == nullptr) {
      return code(
          make_error(ErrorCode::budget_too_small, "a budget of {:.0f} bytes leaves no room for an arena", o.budget));
    }
    arena_ = {static_cast<std::byte*>(block), static_cast<std::size_t>(size)};
  }
  OpenOptions options;
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) \
  options.name = static_cast<boundary::type>(o.name);
#include "qsf/base/boundary.def"
  if (o.kv >= 0) options.kv = static_cast<KvType>(o.kv);
  options.workers = threads_.workers();
  const Result<Session*> opened = open_session(arena_, static_cast<std::uint64_t>(o.file_size), options);
  if (!opened) return code(opened.error());
  session_ = *opened;
  request_.reset();
  return 0;
}

/// Steps for about a millisecond while there is nothing but work: a call from JavaScript costs as much as a small step,
/// and so does a look at the clock.
std::uint32_t Instance::step() {
  constexpr double kMilliseconds = 1;
  Step step = session_->step();
  for (double begin = emscripten_get_now(), last = begin;;) {
    for (std::uint32_t i = 0; i < steps_ && step == Step::working && !request_; ++i) {
      request_ = session_->next_request();
      if (!request_) step = session_->step();
    }
    const double now = emscripten_get_now();
    if (step != Step::working || request_ || now - begin > kMilliseconds) break;
    steps_ = now - last < kMilliseconds / 8 ? steps_ + 1 : (steps_ + 1) / 2;
    last = now;
  }
  if (step == Step::error) last_error_ = session_->error();
  return static_cast<std::uint32_t>(step);
}

Read Instance::next_request() {
  const std::optional<ReadRequest> r = request_ ? std::exchange(request_, {}) : session_->next_request();
  if (!r) return {};
  return {static_cast<double>(r->offset), r->size, r->ticket, address(r->into), r->crc, r->has_crc};
}

std::uint32_t Instance::crc32(Address at, std::uint32_t size) const {
  return qsf::crc32({pointer<const std::byte>(at), size});
}

void Instance::fail(std::uint32_t ticket, std::uint32_t error, std::uint32_t size) {
  session_->fail(ticket, make_error(static_cast<ErrorCode>(error), "{}",
                                    std::string_view(reinterpret_cast<const char*>(staging_), size)));
}

Address Instance::stage(std::uint32_t size) {
  std::free(staging_);
  staging_ = static_cast<std::byte*>(std::malloc(size));
  return address(staging_);
}

std::uint32_t Instance::start(const Start& s, std::uint32_t sequence) {
  std::array<std::string_view, 16> stops;  // more than the engine takes: it says so itself
  const std::size_t n_stops = std::min<std::size_t>(s.n_stops, stops.size());
  const char* stop = pointer<const char>(s.stops);
  for (std::size_t i = 0; i < n_stops; ++i) {
    stops[i] = stop;
    stop += stops[i].size() + 1;
  }
  Prompt prompt;
  prompt.text = {pointer<const char>(s.at), s.text_size};
  prompt.tokens = {pointer<const std::uint32_t>(s.at), s.n_tokens};
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) \
  prompt.sampler.name = static_cast<boundary::type>(s.name);
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) \
  prompt.name = static_cast<boundary::type>(s.name);
#include "qsf/base/boundary.def"
  prompt.stops = {stops.data(), n_stops};
  return code(session_->start(prompt, sequence));
}

std::uint32_t Instance::embed(const Embed& e, std::uint32_t sequence) {
  EmbedPrompt prompt;
  prompt.text = {pointer<const char>(e.at), e.text_size};
  prompt.tokens = {pointer<const std::uint32_t>(e.at), e.n_tokens};
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) \
  prompt.name = static_cast<boundary::type>(e.name);
#include "qsf/base/boundary.def"
  if (e.pooling >= 0) prompt.pooling = static_cast<Pooling>(e.pooling);
  if (e.normalize >= 0) prompt.normalize = e.normalize != 0;
  return code(session_->embed(prompt, sequence));
}

Text Instance::embedding() const {
  const std::span<const float> values = session_->embedding();
  return {address(values.data()), static_cast<std::uint32_t>(values.size_bytes())};
}

Text Instance::piece() const { return text(session_->piece()); }

double Instance::tokenize(const Text& what, bool special, Address out, std::uint32_t max) {
  const Result<std::uint32_t> n =
      session_->tokenize({pointer<const char>(what.at), what.size}, special, {pointer<std::uint32_t>(out), max});
  return n ? *n : -static_cast<double>(code(n.error()));
}

Text Instance::detokenize(std::uint32_t id) const { return text(session_->detokenize(id)); }

val Instance::stats() const {
  const Stats s = session_->stats();
  val out = val::object();
#define QSF_STAT(type, name, js, meaning) out.set(#js, value(s.name));
#include "qsf/base/boundary.def"
  return out;
}

val Instance::sequence_stats(std::uint32_t sequence) const {
  const SequenceStats s = session_->sequence_stats(sequence);
  val out = val::object();
#define QSF_SEQUENCE_STAT(type, name, js, meaning) out.set(#js, value(s.name));
#include "qsf/base/boundary.def"
  return out;
}

val Instance::memory_map() const {
  val out = val::array();
  for (const MemoryRegion& region : session_->memory_map()) {
    val entry = val::object();
    entry.set("region", static_cast<std::uint32_t>(region.region));
    entry.set("bytes", value(region.bytes));
    out.call<void>("push", entry);
  }
  return out;
}

val Instance::kernel_counts() const {
  val out = val::array();
  for (const KernelCount& kernel : session_->kernel_counts()) {
    val entry = val::object();
    entry.set("op", value(kernel.op));
    entry.set("type", value(kernel.type));
    entry.set("calls", value(kernel.calls));
    out.call<void>("push", entry);
  }
  return out;
}

val Instance::segments() const {
  val out = val::array();
  std::uint32_t index = 0;
  for (const SegmentEntry& segment : session_->segments()) {
    val entry = val::object();
    entry.set("offset", value(segment.offset));
    entry.set("size", segment.stored_size);
    entry.set("crc", segment.crc);
    entry.set("rawSize", segment.raw_size);
    entry.set("pinned", session_->is_pinned(index++));
    out.call<void>("push", entry);
  }
  return out;
}

}  // namespace qsf::wasm
