// The engine for JavaScript: conversions only. One module instance holds one session in one arena. Text, token ids and
// pieces cross as places in linear memory; 64-bit numbers as doubles, exact up to 2^53. Calls that can fail give an
// ErrorCode's number, 0 for success; sentence() then says why.
#include <emscripten.h>
#include <emscripten/bind.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "qsf/engine.h"
#include "wasm/workers.h"

namespace {

using emscripten::val;
using Address = std::uint32_t;

struct Open {
  double budget, file_size;
  std::uint32_t max_seq_len;
  int kv;  // KvType, or -1
  bool stream_all;
  std::uint32_t threads;
};

struct Read {
  double offset;
  std::uint32_t size;  // 0: nothing is asked for
  std::uint32_t ticket;
  Address into;
  std::uint32_t crc;
  bool has_crc;
};

struct Text {
  Address at;
  std::uint32_t size;
};

struct Start {
  Address at;  // text bytes, or token ids when n_tokens is not 0
  std::uint32_t text_size, n_tokens;
  Address stops;  // each ended by a zero byte
  std::uint32_t n_stops;
  std::uint32_t max_tokens;
  float temperature;
  std::uint32_t top_k;
  float top_p, repetition_penalty;
  double seed;
  bool add_bos, special, ignore_eos, hash_logits;
};

std::span<std::byte> arena;
std::byte* staging = nullptr;
qsf::Session* session = nullptr;
std::optional<qsf::ReadRequest> request;  // taken from the session, not yet by JavaScript
qsf::Error last_error;

std::uint32_t code(const qsf::Error& error) {
  last_error = error;
  return static_cast<std::uint32_t>(error.code);
}
std::uint32_t code(const qsf::Status& status) { return code(status.error()); }

Address address(const void* at) { return static_cast<Address>(reinterpret_cast<std::uintptr_t>(at)); }
template <class T>
T* pointer(Address at) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(at));
}
Text text(std::string_view view) { return {address(view.data()), static_cast<std::uint32_t>(view.size())}; }
val number(std::uint64_t value) { return val(static_cast<double>(value)); }

/// Begins anew each time it is called; the arena stays the same block.
std::uint32_t open(const Open& o) {
  const double size = o.budget - static_cast<double>(qsf::kHostReserve);
  if (arena.empty()) {
    void* block = size > 0 ? std::aligned_alloc(qsf::kAlignment, static_cast<std::size_t>(size)) : nullptr;
    if (block == nullptr) {
      return code(qsf::make_error(qsf::ErrorCode::budget_too_small,
                                  "a budget of {:.0f} bytes leaves no room for an arena", o.budget));
    }
    arena = {static_cast<std::byte*>(block), static_cast<std::size_t>(size)};
  }
  qsf::OpenOptions options;
  options.max_seq_len = o.max_seq_len;
  if (o.kv >= 0) options.kv = static_cast<qsf::KvType>(o.kv);
  options.stream_all = o.stream_all;
  options.workers = qsf::lend_workers(o.threads);
  const qsf::Result<qsf::Session*> opened =
      qsf::open_session(arena, static_cast<std::uint64_t>(o.file_size), options);
  if (!opened) return code(opened.error());
  session = *opened;
  request.reset();
  return 0;
}

/// Steps for about a millisecond while there is nothing but work: a call from JavaScript costs as much as a small step,
/// and so does a look at the clock.
std::uint32_t step() {
  constexpr double kMilliseconds = 1;
  static std::uint32_t steps = 1;  // between two looks
  qsf::Step step = session->step();
  for (double begin = emscripten_get_now(), last = begin;;) {
    for (std::uint32_t i = 0; i < steps && step == qsf::Step::working && !request; ++i) {
      request = session->next_request();
      if (!request) step = session->step();
    }
    const double now = emscripten_get_now();
    if (step != qsf::Step::working || request || now - begin > kMilliseconds) break;
    steps = now - last < kMilliseconds / 8 ? steps + 1 : (steps + 1) / 2;
    last = now;
  }
  if (step == qsf::Step::error) last_error = session->error();
  return static_cast<std::uint32_t>(step);
}

Read next_request() {
  const std::optional<qsf::ReadRequest> r = request ? std::exchange(request, {}) : session->next_request();
  if (!r) return {};
  return {static_cast<double>(r->offset), r->size, r->ticket, address(r->into), r->crc, r->has_crc};
}

std::uint32_t complete(std::uint32_t ticket) { return code(session->complete(ticket)); }

/// The sentence is staged.
void fail(std::uint32_t ticket, std::uint32_t error, std::uint32_t size) {
  session->fail(ticket, qsf::make_error(static_cast<qsf::ErrorCode>(error), "{}",
                                        std::string_view(reinterpret_cast<const char*>(staging), size)));
}

/// Memory for what the next call reads, 0 when there is not so much outside the arena. Valid until the next stage().
Address stage(std::uint32_t size) {
  std::free(staging);
  staging = static_cast<std::byte*>(std::malloc(size));
  return address(staging);
}

std::uint32_t start(const Start& s) {
  std::array<std::string_view, 16> stops;  // more than the engine takes: it says so itself
  const std::size_t n_stops = std::min<std::size_t>(s.n_stops, stops.size());
  const char* stop = pointer<const char>(s.stops);
  for (std::size_t i = 0; i < n_stops; ++i) {
    stops[i] = stop;
    stop += stops[i].size() + 1;
  }
  qsf::Prompt prompt;
  prompt.text = {pointer<const char>(s.at), s.text_size};
  prompt.tokens = {pointer<const std::uint32_t>(s.at), s.n_tokens};
  prompt.add_bos = s.add_bos;
  prompt.special = s.special;
  prompt.max_tokens = s.max_tokens;
  prompt.hash_logits = s.hash_logits;
  prompt.ignore_eos = s.ignore_eos;
  prompt.sampler = {s.temperature, s.top_k, s.top_p, s.repetition_penalty, static_cast<std::uint64_t>(s.seed)};
  prompt.stops = {stops.data(), n_stops};
  return code(session->start(prompt));
}

void stop() { session->stop(); }
/// Ends the threads, which a browser would otherwise wait for before it ends their workers.
void close() { qsf::end_workers(); }
std::uint32_t rewind_to(std::uint32_t n) { return code(session->rewind(n)); }
std::uint32_t preload() { return code(session->preload()); }
std::uint32_t token() { return session->token(); }
Text piece() { return text(session->piece()); }
std::uint32_t end() { return static_cast<std::uint32_t>(session->end()); }
std::uint32_t error_code() { return static_cast<std::uint32_t>(last_error.code); }
std::string sentence() { return last_error.sentence; }
std::string model_hash() { return std::string(session->model_hash()); }
std::string logits_hash() { return std::string(session->logits_hash()); }

/// The count, or minus an ErrorCode's number. Text and room for `max` ids behind it (4-byte aligned) are staged.
double tokenize(const Text& what, bool special, Address out, std::uint32_t max) {
  const qsf::Result<std::uint32_t> n =
      session->tokenize({pointer<const char>(what.at), what.size}, special, {pointer<std::uint32_t>(out), max});
  return n ? *n : -static_cast<double>(code(n.error()));
}

Text detokenize(std::uint32_t id) { return text(session->detokenize(id)); }

val stats() {
  const qsf::Stats s = session->stats();
  val out = val::object();
  out.set("budget", number(s.budget));
  out.set("modelBytes", number(s.model_bytes));
  out.set("weightBytes", number(s.weight_bytes));
  out.set("segments", s.n_segments);
  out.set("pinnedSegments", s.n_pinned);
  out.set("ringSlots", s.ring_slots);
  out.set("maxSeqLen", s.max_seq_len);
  out.set("chunk", s.chunk);
  out.set("vocabSize", s.vocab_size);
  out.set("layers", s.n_layers);
  out.set("kv", std::string(qsf::kKvNames[static_cast<std::size_t>(s.kv)]));
  out.set("isa", std::string(s.isa));
  out.set("bytesRead", number(s.bytes_read));
  out.set("promptTokens", session->sequence_stats().prompt_tokens);
  out.set("position", session->sequence_stats().position);
  return out;
}

val memory_map() {
  val out = val::array();
  for (const qsf::MemoryRegion& region : session->memory_map()) {
    val entry = val::object();
    entry.set("name", std::string(qsf::region_name(region.region)));
    entry.set("bytes", number(region.bytes));
    out.call<void>("push", entry);
  }
  return out;
}

val kernel_counts() {
  val out = val::array();
  for (const qsf::KernelCount& kernel : session->kernel_counts()) {
    val entry = val::object();
    entry.set("op", std::string(kernel.op));
    entry.set("type", std::string(kernel.type));
    entry.set("calls", number(kernel.calls));
    out.call<void>("push", entry);
  }
  return out;
}

/// The segment table, with what the plan makes of it.
val segments() {
  val out = val::array();
  std::uint32_t index = 0;
  for (const qsf::SegmentEntry& segment : session->segments()) {
    val entry = val::object();
    entry.set("offset", number(segment.offset));
    entry.set("size", segment.stored_size);
    entry.set("crc", segment.crc);
    entry.set("rawSize", segment.raw_size);
    entry.set("pinned", session->is_pinned(index++));
    out.call<void>("push", entry);
  }
  return out;
}

}  // namespace

EMSCRIPTEN_BINDINGS(qsf) {
  using emscripten::function;
  using emscripten::value_object;
  value_object<Open>("Open")
      .field("budget", &Open::budget)
      .field("fileSize", &Open::file_size)
      .field("maxSeqLen", &Open::max_seq_len)
      .field("kv", &Open::kv)
      .field("streamAll", &Open::stream_all)
      .field("threads", &Open::threads);
  value_object<Read>("Read")
      .field("offset", &Read::offset)
      .field("size", &Read::size)
      .field("ticket", &Read::ticket)
      .field("into", &Read::into)
      .field("crc", &Read::crc)
      .field("hasCrc", &Read::has_crc);
  value_object<Text>("Text").field("at", &Text::at).field("size", &Text::size);
  value_object<Start>("Start")
      .field("at", &Start::at)
      .field("textSize", &Start::text_size)
      .field("nTokens", &Start::n_tokens)
      .field("stops", &Start::stops)
      .field("nStops", &Start::n_stops)
      .field("maxTokens", &Start::max_tokens)
      .field("temperature", &Start::temperature)
      .field("topK", &Start::top_k)
      .field("topP", &Start::top_p)
      .field("repetitionPenalty", &Start::repetition_penalty)
      .field("seed", &Start::seed)
      .field("addBos", &Start::add_bos)
      .field("special", &Start::special)
      .field("ignoreEos", &Start::ignore_eos)
      .field("logitsHash", &Start::hash_logits);
  function("open", &open);
  function("step", &step);
  function("nextRequest", &next_request);
  function("complete", &complete);
  function("fail", &fail);
  function("stage", &stage);
  function("start", &start);
  function("stop", &stop);
  function("close", &close);
  function("rewind", &rewind_to);
  function("preload", &preload);
  function("token", &token);
  function("piece", &piece);
  function("end", &end);
  function("errorCode", &error_code);
  function("sentence", &sentence);
  function("modelHash", &model_hash);
  function("logitsHash", &logits_hash);
  function("tokenize", &tokenize);
  function("detokenize", &detokenize);
  function("stats", &stats);
  function("memoryMap", &memory_map);
  function("kernelCounts", &kernel_counts);
  function("segments", &segments);
}
