// A session: an opening, then a model and its sequences, whose columns the session collects into passes.
#include <algorithm>
#include <charconv>
#include <new>
#include <optional>

#include "qsf/base/try.h"
#include "run/session_impl.h"

namespace qsf {
namespace {

/// Reads 64 hexadecimal digits.
std::optional<Sha256Digest> read_digest(std::string_view text) {
  Sha256Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const char* const end = text.data() + 2 * i + 2;
    if (std::from_chars(end - 2, end, digest[i], 16).ptr != end) return std::nullopt;
  }
  return digest;
}

}  // namespace

std::string_view instruction_set(std::size_t index) {
  const std::span<const Kernels* const> available = available_kernels();
  return index < available.size() ? available[index]->isa : std::string_view{};
}

namespace {

Status check(std::string_view name, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return make_error(ErrorCode::bad_argument, "{} is {}; it must be a whole number from {} to {}", name, value, least,
                    most);
}

Status check(const OpenOptions& options) {
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) \
  QSF_TRY(check(#name, options.name, least, most));
#include "qsf/base/boundary.def"
  return {};
}

}  // namespace

Result<Session*> open_session(std::span<std::byte> memory, std::uint64_t file_size, const OpenOptions& options) {
  QSF_TRY(check(options));
  const Kernels* kernels = options.isa.empty() ? &best_kernels() : find_kernels(options.isa);
  if (kernels == nullptr) {
    return make_error(ErrorCode::bad_argument, "this machine or build has no instruction set '{}'", options.isa);
  }
  if (file_size < kHeaderSize) {
    return make_error(ErrorCode::truncated, "the file has {} bytes, less than a QSF header", file_size);
  }
  Arena arena(memory);
  const Budget budget(arena.size(), kHostReserve + options.host_bytes + options.draft_bytes);
  const auto session = arena.take<Session>(1, Region::session);
  const auto impl = arena.take<Session::Impl>(1, Region::session);
  if (!session || !impl) {
    return budget.refusal("any model", budget.outside() + arena.refused(), "");
  }
  Session::Impl& s = impl->front();
  s.arena = arena;
  s.model.kernels = kernels;
  s.model.options = options;
  s.model.options.isa = kernels->isa;  // the caller's string may be freed after the call
  QSF_TRY(s.opening.begin(s.arena, budget, file_size, s.model));
  session->front().impl_ = &s;
  return &session->front();
}

Step Session::Impl::fail(const Error& e) {
  error = e;
  phase = Phase::failed;
  drop_pass();
  for (Sequence& sequence : model.sequences) sequence.stop(model.memory, End::error);
  return Step::error;
}

/// Makes the session ready again after an error, so that failed reads are requested again.
Status Session::Impl::resume() {
  if (!open) return make_error(ErrorCode::bad_state, "the model is not open yet");
  if (phase == Phase::preloading) return make_error(ErrorCode::bad_state, "the model is being loaded");
  if (phase == Phase::failed) model.streamer.recover();
  phase = Phase::ready;
  return {};
}

Step Session::step() {
  Impl& s = *impl_;
  switch (s.phase) {
    case Impl::Phase::opening: {
      const Result<Step> step = s.opening.step();
      if (!step) return s.fail(step.error());
      if (*step != Step::ready) return *step;
      s.open = true;
      s.phase = Impl::Phase::ready;
      return Step::ready;
    }
    case Impl::Phase::preloading:
      if (!s.model.streamer.preload()) {
        return s.model.streamer.failed() ? s.fail(s.model.streamer.error()) : Step::need_bytes;
      }
      s.phase = Impl::Phase::ready;
      return Step::ready;
    case Impl::Phase::ready:
      return s.run();
    case Impl::Phase::failed:
      return Step::error;
  }
  return Step::error;
}

/// Does one piece of the current pass; without a pass, returns a step of its sequences; else begins the next pass.
Step Session::Impl::run() {
  if (in_pass) {
    const Advance advance = model.pass.advance();
    work = model.pass.work();
    if (advance == Advance::done) {
      const Status ended = end_pass();
      return ended ? Step::working : fail(ended.error());
    }
    if (advance == Advance::working) return Step::working;
    return model.streamer.failed() ? fail(model.streamer.error()) : Step::need_bytes;
  }
  const auto n = static_cast<std::uint32_t>(model.sequences.size());
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t id = (turn + i) % n;
    Sequence& sequence = model.sequences[id];
    const Sequence::State before = sequence.state();
    const bool chooses = before == Sequence::State::choosing || before == Sequence::State::settling;
    const Step step = sequence.next(model);
    if (step == Step::working) continue;
    if (chooses) work = Work::sample;
    current = id;
    return step;
  }
  return begin_pass() ? Step::working : Step::ready;
}

Result<Sequence*> Session::Impl::find(std::uint32_t id) {
  if (!open) return make_error(ErrorCode::bad_state, "the model is not open yet");
  if (id < model.sequences.size()) return &model.sequences[id];
  return make_error(ErrorCode::bad_argument, "there is no sequence {}; the session was opened with {}", id,
                    model.sequences.size());
}

const Sequence& Session::Impl::at(std::uint32_t id) const {
  static constinit const Sequence empty;
  return open && id < model.sequences.size() ? model.sequences[id] : empty;
}

Status Session::start(const Prompt& prompt, std::uint32_t sequence) {
  QSF_LET(found, impl_->find(sequence));
  QSF_TRY(impl_->resume());
  impl_->stop(*found, End::cancelled);
  return found->start(impl_->model, prompt);
}

Status Session::embed(const EmbedPrompt& prompt, std::uint32_t sequence) {
  QSF_LET(found, impl_->find(sequence));
  QSF_TRY(impl_->resume());
  impl_->stop(*found, End::cancelled);
  return found->embed(impl_->model, prompt);
}

bool Session::scores() const { return impl_->model.config.table.model.score != 0; }

std::span<const float> Session::embedding() const { return impl_->at(impl_->current).embedding(); }

void Session::stop(std::uint32_t sequence) {
  if (const auto found = impl_->find(sequence)) impl_->stop(**found, End::cancelled);
}

Status Session::rewind(std::uint32_t n, std::uint32_t sequence) {
  QSF_LET(found, impl_->find(sequence));
  if (n > found->tokens().size()) return found->rewind(impl_->model.memory, n);
  impl_->stop(*found, End::cancelled);
  return found->rewind(impl_->model.memory, n);
}

std::uint32_t Session::guesses_wanted(std::uint32_t sequence) const {
  return impl_->at(sequence).guesses_wanted(GuessSource::host);
}

void Session::set_guess_work(double work) {
  Model& model = impl_->model;
  model.set_guess_work(work);
  if (work == 0) model.guess_cost = {};
}

double Session::pass_work() const { return impl_->model.pass_work; }

void Session::guess(std::span<const std::uint32_t> tokens, std::uint32_t sequence) {
  if (const auto found = impl_->find(sequence)) (*found)->give(tokens);
}

Result<bool> Session::shrink(std::uint32_t positions) {
  Model& m = impl_->model;
  if (!impl_->open) return make_error(ErrorCode::bad_state, "the model is not open yet");
  if (!m.memory.can_shrink()) {
    return make_error(ErrorCode::unsupported, "no policy evicts positions in this session, so none can evict more");
  }
  const std::uint32_t least = m.options.kv_chosen != 0 ? kFewestChosen : 1;
  if (positions < least) {
    return make_error(ErrorCode::bad_argument, "a policy keeps at least {} positions, not {}", least, positions);
  }
  if (positions >= m.options.kv_window) return true;
  if (impl_->in_pass) return false;
  const bool done = m.memory.shrink(positions);
  if (done) m.options.kv_window = positions;
  for (Sequence& sequence : m.sequences) sequence.memory_moved();
  return done;
}

std::span<std::byte> Session::unused(std::uint32_t sequence) const {
  const Impl& s = *impl_;
  return s.open && sequence < s.model.sequences.size() ? s.model.memory.unused(sequence) : std::span<std::byte>();
}

Result<SavedHeaderBytes> Session::begin_save(const NoteSum& note, std::uint32_t n_tokens, std::uint32_t sequence) {
  QSF_LET(found, impl_->find(sequence));
  return impl_->saving.begin(impl_->model, *found, note, n_tokens);
}

Result<std::size_t> Session::save(std::span<std::byte> into) { return impl_->saving.next(into); }

Status Session::begin_restore(std::span<const std::byte> header, std::uint64_t file_bytes, std::uint32_t sequence) {
  QSF_LET(found, impl_->find(sequence));
  QSF_TRY(impl_->resume());
  return impl_->restoring.begin(impl_->model, *found, header, file_bytes);
}

Result<bool> Session::restore(std::span<const std::byte> bytes) { return impl_->restoring.take(impl_->model, bytes); }

Status Session::preload() {
  Impl& s = *impl_;
  if (s.phase == Impl::Phase::preloading) return {};
  QSF_TRY(s.resume());
  for (Sequence& sequence : s.model.sequences) s.stop(sequence, End::cancelled);
  s.phase = Impl::Phase::preloading;
  return {};
}

std::optional<ReadRequest> Session::next_request() {
  Impl& s = *impl_;
  if (s.phase == Impl::Phase::failed) return std::nullopt;
  return s.open ? s.model.streamer.next_request() : s.opening.next_request();
}

Status Session::complete(std::uint32_t ticket) {
  if ((ticket & Opening::kTicket) != 0) return impl_->opening.complete(ticket);
  return impl_->model.streamer.complete(ticket);
}

void Session::fail(std::uint32_t ticket, const Error& error) {
  if ((ticket & Opening::kTicket) != 0) return impl_->opening.fail(ticket, error);
  impl_->model.streamer.fail(ticket, error);
}

const Error& Session::error() const { return impl_->error; }
std::uint32_t Session::sequence() const { return impl_->current; }
std::uint32_t Session::token() const { return impl_->at(impl_->current).token(); }
std::span<const TokenLogprob> Session::logprobs() const { return impl_->model.logprobs.found(); }
std::string_view Session::piece() const { return impl_->at(impl_->current).piece(); }
std::span<const std::uint32_t> Session::tokens(std::uint32_t sequence) const { return impl_->at(sequence).tokens(); }
End Session::end(std::uint32_t sequence) const { return impl_->at(sequence).end(); }
SequenceStats Session::sequence_stats(std::uint32_t sequence) const { return impl_->at(sequence).stats(); }
Work Session::work() const { return impl_->work; }
std::string_view Session::model_hash() const { return impl_->model.hash.text.data(); }

Status Session::know_hash(std::string_view hash) {
  const std::optional<Sha256Digest> digest = read_digest(hash);
  if (!digest) return make_error(ErrorCode::bad_argument, "{:.70} is no SHA-256 in hexadecimal", hash);
  impl_->model.hash.set(*digest);
  impl_->model.hash.is_known = true;
  return {};
}
std::span<const MemoryRegion> Session::memory_map() const { return impl_->model.map.regions(); }
std::span<const KernelCount> Session::kernel_counts() const { return impl_->model.pass.counts(); }
Status Session::use_kernel(FormatId format, Batch batch, std::string_view isa) {
  const std::span<const Kernels* const> all = available_kernels();
  const auto found = std::ranges::find(all, isa, &Kernels::isa);
  const int at = format_index(format);
  if (found == all.end() || at < 0 || batch > Batch::many) {
    return make_error(ErrorCode::bad_argument, "there is no instruction set {:.20} here, or no such format or batch",
                      isa);
  }
  impl_->model.pass.use_kernel(static_cast<std::size_t>(at), batch, static_cast<std::size_t>(found - all.begin()));
  return {};
}
std::span<const Observed> Session::observed() const { return impl_->model.pass.observer().seen(); }
std::span<const ObservedLayer> Session::observed_layers() const { return impl_->model.pass.observer().layers(); }
void Session::skip_layer(std::optional<std::uint32_t> layer) { impl_->model.pass.observer().skip(layer); }
std::span<const SegmentEntry> Session::segments() const { return impl_->model.tables.segments; }
bool Session::is_pinned(std::uint32_t segment) const {
  return impl_->open && segment < segments().size() && impl_->model.streamer.is_pinned(segment);
}
bool Session::is_by_text(std::uint32_t segment) const {
  const Model& m = impl_->model;
  if (!impl_->open || segment >= segments().size()) return false;
  const bool vectors = (segments()[segment].flags & kSegmentVectors) != 0;
  const bool is_early = m.options.watched && m.streamer.is_pinned(segment);  // read before any pass uses it
  const bool guesses = m.config.guess_stage != 0 && segments()[segment].stage == m.config.guess_stage;
  const bool is_unused = guesses && !m.options.guess_by_head;
  return !vectors && !is_early && !is_unused && !m.streamer.is_in_order(segment);
}

std::span<const float> Session::logits() const {
  const Impl& s = *impl_;
  if (!s.open) return {};
  const Sequence& sequence = s.at(s.current);
  const std::size_t row = s.model.config.vocab_size;
  const std::span<const float> all = s.model.pass.logits();
  if ((sequence.first_row() + std::size_t{sequence.n_rows()}) * row > all.size()) return {};
  return all.subspan(sequence.first_row() * row, sequence.n_rows() * row);
}

std::string_view Session::logits_hash(std::uint32_t sequence) {
  const auto found = impl_->find(sequence);
  return found ? (*found)->logits_hash() : std::string_view{};
}

Result<std::uint32_t> Session::tokenize(std::string_view text, bool special, std::span<std::uint32_t> out,
                                        std::span<const TextRange> plain, bool begins) {
  Model& m = impl_->model;
  if (!m.tokenizer.open_for_use()) return make_error(ErrorCode::bad_text, "the file has no tokenizer");
  return m.tokenizer.encode(text, special, out, m.tokenizer_scratch, plain, m.options.cancel,
                            begins ? m.begin_token() : std::nullopt);
}

std::string_view Session::detokenize(std::uint32_t token, bool special) const {
  const Tokenizer& tokenizer = impl_->model.tokenizer;
  if (!tokenizer.open_for_use()) return {};
  return special && tokenizer.is_control(token) ? tokenizer.control_text(token) : tokenizer.bytes(token);
}

bool Session::is_end(std::uint32_t token) const { return impl_->model.config.is_end(token); }

std::span<const std::uint32_t> Session::end_tokens() const {
  const Config& config = impl_->model.config;
  return std::span(config.ends).first(config.n_ends);
}

bool Session::is_added(std::uint32_t token) const { return impl_->model.tokenizer.is_added(token); }

std::optional<std::uint32_t> Session::begin_token() const { return impl_->model.begin_token(); }
std::optional<std::uint32_t> Session::closing_token(std::span<const std::uint32_t> ids) const {
  return impl_->model.closing_token(ids, true);
}

std::string_view Session::special_token(std::string_view name) const {
  constexpr std::size_t kLongest = 16;
  const Model& m = impl_->model;
  std::array<char, kMetaChatTokens.size() + kLongest> key{};
  if (name.size() > kLongest) return {};
  const auto end = std::ranges::copy(name, std::ranges::copy(kMetaChatTokens, key.begin()).out).out;
  // A file has the tokens that its own templates name.
  const std::string_view kept = metadata({key.begin(), end});
  if (!kept.empty()) return kept;
  const Header& h = m.tables.header;
  const std::uint32_t id = name == "bos_token"   ? h.bos
                           : name == "eos_token" ? h.eos
                           : name == "pad_token" ? h.pad
                                                 : kNoToken;
  return id < h.vocab_size ? detokenize(id, true) : std::string_view();
}

std::string_view Session::metadata(std::string_view key) const {
  return impl_->open ? impl_->model.metadata(key) : std::string_view{};
}

std::span<std::byte> Session::text_memory() const {
  return impl_->open ? impl_->arena.last(Region::texts) : std::span<std::byte>{};
}

Stats Session::stats() const {
  const Impl& s = *impl_;
  const Model& m = s.model;
  Stats out;
  out.budget = s.opening.budget().bytes();
  out.model_bytes = s.opening.file_size();
  out.weight_bytes = m.weight_bytes;
  out.pinned_bytes = m.plan.pinned_bytes;
  out.n_segments = m.n_segments;
  out.n_pinned = m.n_pinned;
  out.ring_slots = m.plan.ring_slots;
  out.ring_bytes = m.plan.ring_slots * m.plan.slot_bytes;
  out.max_seq_len = m.plan.max_seq_len;
  out.model_seq_len = m.config.max_seq_len;
  out.chunk = m.plan.chunk;
  out.sequences = m.options.sequences;
  out.guesses = m.guesses;
  out.kv_window = m.options.kv_window;
  out.kv_sinks = m.options.kv_sinks;
  out.kv_chosen = m.options.kv_chosen;
  out.vocab_size = m.config.vocab_size;
  out.n_layers = m.config.n_layers;
  out.dim = m.config.dim;
  out.kv = m.plan.kv;
  out.context_reason = context_reason(m.plan.context_why);
  out.kv_reason = kv_reason(m.plan.kv_why);
  out.more_context = m.more_context();
  out.warning = m.warning.sentence;
  out.isa = m.kernels->isa;
  out.token_bytes = static_cast<std::uint64_t>(m.plan.bytes_read);
  out.token_rate = static_cast<float>(m.plan.rate);
  out.resident_budget = m.plan.resident_budget;
  out.resident_rate = static_cast<float>(m.plan.resident_rate);
  out.bytes_read = s.opening.bytes_requested() + m.streamer.bytes_requested();
  out.experts_chosen = m.pass.experts_chosen();
  out.experts_found = m.pass.experts_found();
  out.expert_bytes = m.streamer.chosen_bytes_requested();
  return out;
}

}  // namespace qsf
