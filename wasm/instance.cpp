#include "wasm/instance.h"

#include <emscripten.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "qsf/base/budget.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/chat/rerank.h"

namespace qsf::wasm {
namespace {

/// Bytes that stage() leaves free for allocations by the calls.
constexpr std::size_t kCallsRoom = 16 * 1024;

}  // namespace

Status Instance::open(std::uint64_t budget, std::uint64_t file_size, bool vouched, std::optional<KvType> kv,
                      const OpenOptions& given) {
  OpenOptions options = given;
  options.kv = kv;
  options.vouched = vouched;
  if (draft_ != nullptr) {
    options.guess_source = GuessSource::host;
    options.draft_bytes = draft_->opening_->budget();
  }
  const bool needs_guesses = draft_ != nullptr || options.guess_by_layers || options.guess_by_head;
  if (needs_guesses && options.guesses == 0) options.guesses = kUsualGuesses;
  return begin(budget, file_size, options);
}

Status Instance::begin(std::uint64_t budget, std::uint64_t file_size, const OpenOptions& given) {
  // All other memory of the object is freed before the arena is taken, which may need all that there is.
  conversation_ = {};
  answers_ = std::vector<Answer>();
  of_parts_ = {};
  unread_.reset();
  guides_ = std::array<Guides, 2>();
  of_guides_ = 0;
  next_guide_ = nullptr;
  guide_error_.reset();
  unfollowed_.reset();
  calls_.reset();
  lists_ = std::vector<std::unique_ptr<Lists>>();
  request_.reset();
  guesses_.reset();
  staging_.reset();
  staging_size_ = 0;
  if (arena_ == nullptr) {
    const auto size = static_cast<std::size_t>(Budget::within(budget, kHostReserve + given.draft_bytes).arena());
    void* block = size != 0 ? std::aligned_alloc(kAlignment, size) : nullptr;
    if (block == nullptr) {
      return make_error(ErrorCode::budget_too_small, "a budget of {} bytes leaves no room for an arena", budget);
    }
    arena_.reset(static_cast<std::byte*>(block));
    arena_size_ = size;
  }
  OpenOptions options = given;
  options.workers = threads_.workers();
  QSF_LET(opened, open_session({arena_.get(), arena_size_}, file_size, options));
  session_ = opened;
  answers_ = std::vector<Answer>(options.sequences);
  return {};
}

void Instance::use_draft(Instance& draft) {
  draft_ = &draft;
  draft.threads_.share(threads_);
}

Result<bool> Instance::open_draft(std::uint64_t budget, std::uint64_t file_size, bool vouched, bool again,
                                  const OpenOptions& model) {
  if (!again || !opening_) {
    opening_.emplace(budget, model);
  } else if (!opening_->is_last()) {
    opening_->planned(session_->stats());
  }
  OpenOptions options = opening_->options();
  options.watched = model.watched;
  options.vouched = vouched;
  arena_.reset();
  const Status begun = begin(opening_->budget(), file_size, options);
  if (!begun) return opening_->refusal(begun.error());
  return opening_->is_last();
}

Status Instance::check_draft() {
  QSF_TRY(qsf::check_draft(*session_, draft_->session()));
  guesses_.emplace(*session_, draft_->session());
  return {};
}

Error Instance::draft_note(std::uint32_t i) const {
  const std::array<Error, 2> notes = draft_notes(*session_, draft_->session());
  return i < notes.size() ? notes[i] : Error();
}

Result<bool> Instance::begin_guess() {
  if (!guesses_) return false;
  QSF_LET(begun, guesses_->begin());
  if (begun) draft_->threads_.begun();
  return begun;
}

bool Instance::take_guess() { return guesses_->take(draft_->unread_ ? draft_->unread_->step : Step::ready); }

/// Takes several steps in a call and between readings of the clock, because each of the two costs as much as a small
/// step.
Step Instance::step() {
  constexpr double kMilliseconds = 1;
  guide_error_.reset();
  if (const Status followed = follow(); !followed) {
    guide_error_ = followed.error();
    return Step::error;
  }
  threads_.stepping();
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
  threads_.stepped(step, begin / 1000, now / 1000);
  unread_ = {step, session_->sequence()};
  if (step == Step::token) unfollowed_ = {session_->sequence(), session_->token()};
  return step;
}

/// Stops the generation if its guide fails.
Status Instance::follow() {
  const std::optional<Unfollowed> last = std::exchange(unfollowed_, {});
  Held* const held = last ? guide_of(last->sequence) : nullptr;
  if (held == nullptr) return {};
  if (unread_) parts().read({nullptr, [](void*, const chat::Part&) {}});
  const Status followed = held->guide.follow(last->token);
  if (!followed) session_->stop(last->sequence);
  return followed;
}

std::optional<ReadRequest> Instance::next_request() {
  return request_ ? std::exchange(request_, {}) : session_->next_request();
}

std::uint32_t Instance::crc32(std::uint32_t at, std::uint32_t size) const {
  const std::size_t begin = at - reinterpret_cast<std::uintptr_t>(arena_.get());
  if (begin > arena_size_ || size > arena_size_ - begin) return 0;
  return qsf::crc32(std::span(arena_.get() + begin, size));
}

std::string_view Instance::digest() {
  digest_ = hex(std::exchange(sum_, {}).digest());
  staging_.reset();  // the arena takes all memory
  staging_size_ = 0;
  return digest_.data();
}

void Instance::fail(std::uint32_t ticket, std::uint32_t code, std::uint32_t size) {
  session_->fail(ticket, make_error(static_cast<ErrorCode>(code), "{}", staged(0, size)));
}

std::optional<std::span<std::uint8_t>> Instance::stage(std::uint32_t size) {
  staging_.reset();
  staging_size_ = 0;
  if (size > SIZE_MAX - kCallsRoom) return {};
  // Tests that the larger block is available. Nothing else allocates before the second malloc().
  if (Block(static_cast<std::byte*>(std::malloc(size + kCallsRoom))) == nullptr) return {};
  staging_.reset(static_cast<std::byte*>(std::malloc(std::max(size, 1u))));
  if (staging_ == nullptr) return {};
  staging_size_ = size;
  return std::span(reinterpret_cast<std::uint8_t*>(staging_.get()), size);
}

std::string_view Instance::staged(std::size_t begin, std::size_t size) const {
  const std::span<std::byte> rest = staging().subspan(std::min(begin, staging_size_));
  return {reinterpret_cast<const char*>(rest.data()), std::min(size, rest.size())};
}

std::span<const std::uint32_t> Instance::staged_tokens(std::size_t n) const {
  return {reinterpret_cast<const std::uint32_t*>(staging_.get()), std::min(n, staging_size_ / 4)};
}

Status Instance::generate(Prompt& prompt, std::size_t begin, std::size_t size, bool is_answer, std::uint32_t sequence) {
  std::array<std::string_view, 16> stops;  // more than the engine allows, which reports the excess
  std::size_t n_stops = 0;
  if (is_answer && !answer_form_.stop().empty()) stops[n_stops++] = answer_form_.stop();
  n_stops += split_texts(staged(begin, size), std::span(stops).subspan(n_stops));
  prompt.stops = {stops.data(), n_stops};
  forget(sequence);
  chat::AnswerParts* const parts = is_answer ? &*answers_[sequence].parts : nullptr;
  if (is_answer) QSF_TRY(parts->begin(conversation_.rendered, prompt.stops));
  Held* const held = std::exchange(next_guide_, nullptr);
  if (held != nullptr) {
    QSF_TRY(held->guide.begin(prompt.end_tokens, parts));
    prompt.allowed = held->guide.allowed();
    prompt.expected = held->guide.expected();
    prompt.ignore_eos = false;
  }
  QSF_TRY(session_->start(prompt, sequence));
  if (is_answer) answers_[sequence].reading = true;
  if (held != nullptr) held->sequence = sequence;
  return {};
}

/// Forgets the text of a sequence, because another one begins.
void Instance::forget(std::uint32_t sequence) {
  threads_.begun();
  if (unread_ && unread_->sequence == sequence) unread_.reset();
  if (sequence < answers_.size()) answers_[sequence].reading = false;
  if (unfollowed_ && unfollowed_->sequence == sequence) unfollowed_.reset();
  if (Held* const held = guide_of(sequence); held != nullptr) held->sequence.reset();
}

Instance::Held* Instance::guide_of(std::uint32_t sequence) {
  for (Guides& guides : guides_) {
    const auto found = std::ranges::find(guides, sequence, &Held::sequence);
    if (found != guides.end()) return &*found;
  }
  return nullptr;
}

Status Instance::start(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens,
                       std::uint32_t stops_size, const SamplerOptions& sampler, const Prompt& options) {
  Prompt prompt = options;
  prompt.sampler = with_lists(sampler, sequence);
  prompt.text = staged(0, text_size);
  prompt.tokens = staged_tokens(n_tokens);
  return generate(prompt, text_size != 0 ? text_size : prompt.tokens.size_bytes(), stops_size, false, sequence);
}

std::uint32_t Instance::guides(bool grammars) {
  const Result<Guides*> built = build_guides(grammars);
  return built ? static_cast<std::uint32_t>((*built)->size()) : 1;
}

Status Instance::guide(std::optional<GrammarKind> kind, std::uint32_t size) {
  next_guide_ = nullptr;
  if (!kind) return {};
  QSF_TRY(take_guide(true));
  Held* const held = std::exchange(next_guide_, nullptr);
  QSF_TRY(held->guide.set({*kind, staged(0, size)}));
  held->guide.limit_thoughts(chat::Guide::kUnlimited);
  next_guide_ = held;
  return {};
}

Status Instance::hold(std::uint32_t thought, bool calls, bool required, std::uint32_t name) {
  calls_.reset();
  if (!calls && thought == chat::Guide::kUnlimited) return {};
  if (calls && next_guide_ != nullptr) {
    return make_error(ErrorCode::bad_argument, "a grammar of the text and held calls exclude each other");
  }
  if (next_guide_ == nullptr) {
    QSF_TRY(take_guide(calls));
    next_guide_->guide.allow_all();
  }
  next_guide_->guide.limit_thoughts(thought);
  if (calls) calls_ = Calls{required, std::string(staged(0, name))};
  return {};
}

Status Instance::take_guide(bool grammars) {
  QSF_LET(guides, build_guides(grammars));
  for (Held& held : *guides) {
    if (held.sequence && runs(*held.sequence)) continue;
    held.sequence.reset();
    next_guide_ = &held;
    return {};
  }
  return make_error(ErrorCode::bad_state,
                    "{} generations at once can follow grammars, held calls or budgets of thoughts", guides->size());
}

Result<Instance::Guides*> Instance::build_guides(bool grammars) {
  Guides& guides = guides_[grammars ? 1 : 0];
  if (!guides.empty()) return &guides;
  conversation_ = {};
  std::span<std::byte> memory = session_->text_memory();
  memory = memory.first(memory.size() - of_guides_);
  if (answers()) memory = memory.subspan(of_parts_.size());
  const auto most = static_cast<std::uint32_t>(answers_.size());
  QSF_LET(built, grammars ? chat::Guide::build(*session_, memory, most)
                          : chat::Guide::build_for_thoughts(*session_, memory, most));
  of_guides_ += memory.size() - built.free().size();
  guides.reserve(built.shares());
  for (std::uint32_t i = 0; i < built.shares(); ++i) guides.push_back({built.in_share(i), {}});
  return &guides;
}

Status Instance::sampling(std::uint32_t sequence, std::uint32_t n_biases, std::optional<std::uint32_t> samplers,
                          std::optional<std::uint32_t> breakers) {
  session_->stop(sequence);
  if (sequence < lists_.size()) lists_[sequence].reset();
  if (n_biases == 0 && !samplers && !breakers) return {};
  QSF_LET(read, SamplerLists::read(staging(), n_biases, samplers, breakers));
  if (sequence >= session_->stats().sequences) return {};  // start() refuses it
  if (lists_.size() <= sequence) lists_.resize(sequence + 1);
  lists_[sequence] = std::make_unique<Lists>(std::move(staging_), read);
  staging_size_ = 0;
  return {};
}

SamplerOptions Instance::with_lists(const SamplerOptions& numbers, std::uint32_t sequence) const {
  const bool has_lists = sequence < lists_.size() && lists_[sequence] != nullptr;
  return has_lists ? lists_[sequence]->lists.with(numbers) : numbers;
}

Status Instance::converse(std::optional<std::uint32_t> sequence, std::uint32_t chat_template, std::uint32_t values,
                          std::uint32_t more, const templates::Time& now) {
  const chat::Conversation given{staged(0, chat_template), staged(chat_template, values),
                                 staged(std::size_t{chat_template} + values, more), now};
  conversation_ = {};
  if (sequence && *sequence >= answers_.size()) sequence.reset();  // answer() refuses it
  if (sequence) {
    session_->stop(*sequence);
    forget(*sequence);
    answers_[*sequence].parts.reset();
  }
  const chat::TextMemory memory = texts();
  const std::optional<Calls> calls = sequence ? std::exchange(calls_, {}) : std::nullopt;
  if (calls && next_guide_ != nullptr) {
    const chat::CallRules rules{.required = calls->required, .only = calls->only};
    QSF_TRY(next_guide_->guide.set_calls(given, rules, memory.conversations));
  }
  QSF_LET(form, chat::AnswerForm::read(*session_, given, memory.conversations));
  if (sequence) {
    const std::size_t share = memory.parts.size() / answers_.size() / kAlignment * kAlignment;
    const std::span<std::byte> own = memory.parts.subspan(*sequence * share, share);
    QSF_LET(parts, chat::AnswerParts::open(*session_, form, given, memory.conversations, own));
    answers_[*sequence].parts = parts;
    answer_form_ = form;
  }
  QSF_LET(tokens, chat::tokenize(*session_, given, memory.conversations));
  conversation_ = tokens;
  if (!sequence) conversation_.ids = {};
  return {};
}

bool Instance::answers() const {
  for (std::uint32_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i].reading && runs(i)) return true;
  }
  return false;
}

chat::TextMemory Instance::texts() {
  const std::span<std::byte> all = session_->text_memory();
  const std::span<std::byte> left = all.first(all.size() - of_guides_);
  if (!answers()) of_parts_ = chat::AnswerParts::divide(left, answers_.size()).parts;
  return {left.subspan(of_parts_.size()), of_parts_};
}

Status Instance::answer(std::uint32_t sequence, std::uint32_t stops_size, const SamplerOptions& sampler,
                        const Prompt& options) {
  if (conversation_.ids.empty() || sequence >= answers_.size() || !answers_[sequence].parts)
    return make_error(ErrorCode::bad_state, "there is no conversation to answer");
  Prompt prompt = options;
  prompt.sampler = with_lists(sampler, sequence);
  prompt.tokens = conversation_.ids;
  prompt.anew = true;
  prompt.end_tokens = answer_form_.end_tokens();
  return generate(prompt, 0, stops_size, true, sequence);
}

void NewParts::read(const chat::PartSink& sink) const {
  Instance& i = *instance_;
  const auto last = std::exchange(i.unread_, {});
  if (!last || last->sequence >= i.answers_.size()) return;
  Instance::Answer& answer = i.answers_[last->sequence];
  if (!answer.reading) return;
  if (last->step == Step::token) answer.parts->token(i.session_->token(), sink);
  if (last->step == Step::done) answer.parts->end(sink);
}

Status Instance::embed(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens,
                       std::optional<Pooling> pooling, std::optional<bool> normalize, const EmbedPrompt& options) {
  forget(sequence);
  EmbedPrompt prompt = options;
  prompt.text = staged(0, text_size);
  prompt.tokens = staged_tokens(n_tokens);
  prompt.pooling = pooling;
  prompt.normalize = normalize;
  return session_->embed(prompt, sequence);
}

Status Instance::rerank(std::uint32_t sequence, std::uint32_t query, std::uint32_t document) {
  forget(sequence);
  if (session_->scores()) conversation_ = {};  // whose memory is used
  return chat::rerank(*session_, staged(0, query), staged(query, document), session_->text_memory(), sequence);
}

Result<Bytes> Instance::begin_save(std::uint32_t sequence, std::uint32_t note_bytes, std::uint32_t note_crc) {
  QSF_LET(header, session_->begin_save({note_bytes, note_crc}, kAllTokens, sequence));
  saved_header_ = header;
  return Bytes{{reinterpret_cast<const char*>(saved_header_.data()), saved_header_.size()}};
}

Result<Bytes> Instance::save() {
  QSF_LET(n, session_->save(staging()));
  return Bytes{staged(0, n)};
}

Result<Saved> Instance::begin_restore(std::uint32_t sequence, std::uint64_t file_size) {
  QSF_LET(header, read_saved_header(staging()));
  QSF_TRY(session_->begin_restore(staging(), file_size, sequence));
  forget(sequence);
  return Saved{header.n_tokens, header.note.bytes, header.note.crc};
}

Result<bool> Instance::restore(std::uint32_t size) { return session_->restore(staged_bytes(size)); }

Result<std::span<const std::uint32_t>> Instance::tokenize(std::uint32_t text_size, bool special) {
  const std::string_view text = staged(0, text_size);
  const std::size_t behind = std::min((text.size() + 3) / 4 * 4, staging_size_);
  const std::span<std::byte> room = staging().subspan(behind);
  const std::span<std::uint32_t> out(reinterpret_cast<std::uint32_t*>(room.data()), room.size() / 4);
  QSF_LET(n, session_->tokenize(text, special, out));
  return std::span<const std::uint32_t>(out.first(n));
}

}  // namespace qsf::wasm
