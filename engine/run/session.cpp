#include <algorithm>

#include "qsf/base/try.h"
#include "run/session_impl.h"

namespace qsf {

std::array<char, 65> hex(const Sha256Digest& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<char, 65> out{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    out[2 * i] = digits[digest[i] >> 4];
    out[2 * i + 1] = digits[digest[i] & 15];
  }
  return out;
}

Step Session::step() {
  Impl& s = *impl_;
  if (s.failed.load(std::memory_order_acquire)) {
    s.failed.store(false, std::memory_order_relaxed);
    if (s.open) s.streamer.recover();
    const Error error = s.async_error;
    s.failing.clear(std::memory_order_release);
    return s.fail_with(error);
  }
  switch (s.phase) {
    case Impl::Phase::opening: {
      if (!s.reads_done()) return Step::need_bytes;
      if (const Status status = s.open_step(); !status) {
        return s.fail_with(status.error().code == ErrorCode::out_of_memory ? s.tables_too_large() : status.error());
      }
      if (!s.open) return Step::working;
      s.phase = Impl::Phase::ready;
      return Step::ready;
    }
    case Impl::Phase::preloading:
      if (!s.streamer.preload()) return Step::need_bytes;
      s.phase = Impl::Phase::ready;
      return Step::ready;
    case Impl::Phase::prefill:
      return s.prefill_step();
    case Impl::Phase::decode:
      return s.decode_step();
    case Impl::Phase::ready:
      return Step::ready;
    case Impl::Phase::finished:
      return Step::done;
    case Impl::Phase::failed:
      return Step::error;
  }
  return Step::error;
}

Step Session::Impl::advance_pass() {
  const Forward::Advance advance = forward.advance();
  work = forward.work();
  switch (advance) {
    case Forward::Advance::working:
      return Step::working;
    case Forward::Advance::blocked:
      return Step::need_bytes;
    case Forward::Advance::done:
      break;
  }
  passing = false;
  position += pass_columns;
  return Step::done;
}

void Session::Impl::begin_pass(std::uint32_t n, std::uint32_t logits_rows) {
  work = Work::embed;
  forward.begin(tokens.subspan(position, n), position, logits_rows);
  pass_columns = n;
  passing = true;
  kv_high = std::max(kv_high, position + n);
}

void Session::Impl::take_logits() {
  if (hash_logits) logits_sha.update(std::as_bytes(forward.logits()));
}

/// Feeds the known tokens chunk by chunk; the last one's logits start the generation.
Step Session::Impl::prefill_step() {
  if (!passing) {
    const std::uint32_t left = n_tokens - position, n = std::min(left, plan.chunk);
    begin_pass(n, all_logits ? n : n == left ? 1 : 0);
    return Step::working;
  }
  if (const Step step = advance_pass(); step != Step::done) return step;
  if (position == n_tokens) phase = Phase::decode;
  if (forward.logits().empty()) return Step::working;
  take_logits();
  return all_logits ? Step::logits : Step::working;
}

/// Samples from the logits at hand, then feeds what was sampled.
Step Session::Impl::decode_step() {
  if (passing) {
    if (const Step step = advance_pass(); step != Step::done) return step;
    take_logits();
    if (all_logits) return Step::logits;
  }
  if (position == n_tokens) return sample_token();
  if (text.stopped() || n_generated == max_tokens || by_eos || position == plan.max_seq_len) return finish();
  begin_pass(1, 1);
  return Step::working;
}

Step Session::Impl::sample_token() {
  if (n_generated == max_tokens || position == plan.max_seq_len) return finish();
  work = Work::sample;
  const std::span<float> rows = forward.logits();
  token = sampler.sample(rows.last(config.vocab_size), tokens.first(n_tokens));
  tokens[n_tokens++] = token;
  ++n_generated;
  if (config.is_end(token) && !ignore_eos) {
    by_eos = true;
    return finish();
  }
  const std::string_view bytes = tokenizer.open_for_use() ? tokenizer.bytes(token) : std::string_view{};
  piece = text.push(bytes);
  return Step::token;
}

Step Session::Impl::finish() {
  end = by_eos ? End::eos : text.stopped() ? End::stop : n_generated == max_tokens ? End::length : End::context;
  piece = text.stopped() ? std::string_view{} : text.finish();
  phase = Phase::finished;
  return Step::done;
}

Status Session::start(const Prompt& prompt, std::uint32_t sequence) {
  Impl& s = *impl_;
  if (sequence != 0) return make_error(ErrorCode::bad_argument, "there is no sequence {}", sequence);
  if (!s.open) return make_error(ErrorCode::bad_state, "the model is not open yet");
  if (s.phase == Impl::Phase::preloading) return make_error(ErrorCode::bad_state, "the model is being loaded");
  if (prompt.all_logits && !s.options.all_logits) {
    return make_error(ErrorCode::bad_argument, "all logits were not asked for when the model was opened");
  }
  QSF_TRY(check(prompt.sampler));
  stop();

  // What was known but not fed, such as the last sampled token, is fed first.
  const std::uint32_t room = s.plan.max_seq_len - s.n_tokens;
  const std::span<std::uint32_t> out = s.tokens.subspan(s.n_tokens, room);
  std::uint32_t added = 0;
  if (!prompt.tokens.empty()) {
    if (prompt.tokens.size() > room) {
      return make_error(ErrorCode::context_full, "{} tokens do not fit in the {} that are left of a context of {}",
                        prompt.tokens.size(), room, s.plan.max_seq_len);
    }
    for (const std::uint32_t id : prompt.tokens) {
      if (id >= s.config.vocab_size) {
        return make_error(ErrorCode::bad_token, "token {} is not in the vocabulary of {}", id, s.config.vocab_size);
      }
      out[added++] = id;
    }
  } else {
    if (!s.tokenizer.open_for_use()) {
      return make_error(ErrorCode::bad_text, "the file has no tokenizer: give token ids instead of text");
    }
    if (s.n_tokens == 0 && prompt.add_bos && s.tokenizer.add_bos() && s.config.bos < s.config.vocab_size && room > 0) {
      out[added++] = s.config.bos;
    }
    const Result<std::uint32_t> n =
        s.tokenizer.encode(prompt.text, prompt.special, out.subspan(added), s.tokenizer_scratch);
    if (!n) return n.error();
    added += *n;
  }
  if (s.n_tokens + added == 0) return make_error(ErrorCode::bad_argument, "the prompt is empty");
  if (s.n_tokens + added == s.position) {
    return make_error(ErrorCode::bad_argument, "the prompt adds nothing to the sequence");
  }
  QSF_TRY(s.text.begin(prompt.stops));

  s.n_tokens += added;
  s.n_prompt = s.n_tokens - s.position;
  s.max_tokens = prompt.max_tokens;
  s.n_generated = 0;
  s.all_logits = prompt.all_logits;
  s.hash_logits = prompt.hash_logits;
  s.ignore_eos = prompt.ignore_eos;
  s.by_eos = false;
  s.end = End::none;
  s.piece = {};
  s.logits_sha = {};
  s.sampler.begin(prompt.sampler, *s.kernels, s.candidates);
  s.phase = Impl::Phase::prefill;
  return {};
}

void Session::stop(std::uint32_t sequence) {
  Impl& s = *impl_;
  if (!s.open || sequence != 0) return;
  if (s.phase == Impl::Phase::prefill || s.phase == Impl::Phase::decode) s.end = End::cancelled;
  if (s.passing) s.go_back(s.position);
  if (s.phase != Impl::Phase::preloading) s.phase = Impl::Phase::ready;
}

Status Session::rewind(std::uint32_t n, std::uint32_t sequence) {
  Impl& s = *impl_;
  if (sequence != 0) return make_error(ErrorCode::bad_argument, "there is no sequence {}", sequence);
  if (!s.open) return make_error(ErrorCode::bad_state, "the model is not open yet");
  if (n > s.n_tokens) {
    return make_error(ErrorCode::bad_argument, "the sequence has {} tokens, not {}", s.n_tokens, n);
  }
  stop();
  s.n_tokens = n;
  s.go_back(n);
  return {};
}

/// The cache as it was at n positions. A ring that later positions have overwritten cannot be gone back in: then the
/// kept tokens are fed again.
void Session::Impl::go_back(std::uint32_t n) {
  passing = false;
  position = std::min(position, n);
  if (kv_high > plan.kv_capacity && position < kv_high) position = 0;
  if (position == 0) kv_high = 0;
}

Status Session::preload() {
  Impl& s = *impl_;
  if (!s.open) return make_error(ErrorCode::bad_state, "the model is not open yet");
  stop();
  s.phase = Impl::Phase::preloading;
  return {};
}

std::optional<ReadRequest> Session::next_request() {
  Impl& s = *impl_;
  if (s.phase == Impl::Phase::failed) return std::nullopt;
  for (std::uint32_t i = 0; i < s.n_reads; ++i) {
    if (!s.reads[i].issued.exchange(true)) return s.reads[i].request;
  }
  return s.open ? s.streamer.next_request() : std::nullopt;
}

void Session::Impl::fail_async(const Error& e) {
  if (failing.test_and_set(std::memory_order_acquire)) return;  // the first error is the one to tell
  async_error = e;
  failed.store(true, std::memory_order_release);
}

Status Session::complete(std::uint32_t ticket) {
  Impl& s = *impl_;
  Status status;
  if ((ticket & Impl::kOpeningTicket) != 0) {
    const std::uint32_t i = ticket & ~Impl::kOpeningTicket;
    if (i >= s.n_reads) return make_error(ErrorCode::bad_argument, "ticket {} was not asked for", ticket);
    const ReadRequest& r = s.reads[i].request;
    const std::uint32_t crc = r.has_crc ? crc32({r.into, r.size}) : 0;
    if (crc != r.crc) {
      status = make_error(ErrorCode::bad_checksum,
                          "the {} bytes at {} have CRC-32 {:08x}, not the {:08x} that the file states", r.size,
                          r.offset, crc, r.crc);
    } else {
      s.reads[i].done.store(true, std::memory_order_release);
    }
  } else if (s.open) {
    status = s.streamer.complete(ticket);
  }
  if (!status && status.error().code != ErrorCode::bad_argument) s.fail_async(status.error());
  return status;
}

void Session::fail(std::uint32_t ticket, const Error& error) {
  if ((ticket & Impl::kOpeningTicket) == 0 && impl_->open) impl_->streamer.fail(ticket);
  impl_->fail_async(error);
}

const Error& Session::error() const { return impl_->error; }
std::uint32_t Session::token() const { return impl_->token; }
std::string_view Session::piece() const { return impl_->piece; }
std::span<const float> Session::logits() const { return impl_->forward.logits(); }
std::uint32_t Session::sequence() const { return 0; }
std::span<const std::uint32_t> Session::tokens(std::uint32_t) const { return impl_->tokens.first(impl_->n_tokens); }
End Session::end(std::uint32_t) const { return impl_->end; }
Work Session::work() const { return impl_->work; }
std::string_view Session::model_hash() const { return impl_->model_hash.data(); }
std::span<const MemoryRegion> Session::memory_map() const { return {impl_->map.data(), impl_->n_map}; }
std::span<const KernelCount> Session::kernel_counts() const { return impl_->forward.counts(); }
std::span<const SegmentEntry> Session::segments() const { return impl_->segments; }
bool Session::is_pinned(std::uint32_t segment) const {
  return impl_->open && segment < impl_->segments.size() && impl_->streamer.is_pinned(segment);
}

std::string_view Session::logits_hash(std::uint32_t) {
  impl_->logits_hash = hex(impl_->logits_sha.digest());
  return impl_->logits_hash.data();
}

Result<std::uint32_t> Session::tokenize(std::string_view text, bool special, std::span<std::uint32_t> out) {
  Impl& s = *impl_;
  if (!s.tokenizer.open_for_use()) return make_error(ErrorCode::bad_text, "the file has no tokenizer");
  return s.tokenizer.encode(text, special, out, s.tokenizer_scratch);
}

std::string_view Session::detokenize(std::uint32_t token) const {
  return impl_->tokenizer.open_for_use() ? impl_->tokenizer.bytes(token) : std::string_view{};
}

Stats Session::stats() const {
  const Impl& s = *impl_;
  Stats out;
  out.budget = s.budget;
  out.model_bytes = s.file_size;
  out.weight_bytes = s.weight_bytes;
  out.pinned_bytes = s.plan.pinned_bytes;
  out.n_segments = static_cast<std::uint32_t>(s.segments.size());
  out.n_pinned = s.n_pinned;
  out.ring_slots = s.plan.ring_slots;
  out.ring_bytes = s.plan.ring_slots * s.plan.slot_bytes;
  out.model_seq_len = s.config.max_seq_len;
  out.sequences = 1;
  out.max_seq_len = s.plan.max_seq_len;
  out.chunk = s.plan.chunk;
  out.vocab_size = s.config.vocab_size;
  out.n_layers = s.config.n_layers;
  out.kv = s.plan.kv;
  out.isa = s.kernels->isa;
  out.bytes_read = s.opening_bytes + s.streamer.bytes_requested();
  return out;
}

SequenceStats Session::sequence_stats(std::uint32_t) const {
  return {impl_->position, impl_->n_prompt, impl_->n_generated};
}

}  // namespace qsf
