#include "run/opening.h"

#include <algorithm>

#include "model/op.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/run/draft.h"

namespace qsf {
namespace {

/// Work of a byte that is read over that of a byte that is computed with, and of a further column of a pass over that
/// of its first one, as usual processors and disks have them.
constexpr double kReadWork = 8, kColumnWork = 0.25;

struct Wanted {
  std::uint32_t tag;
  Region region;
  bool needed;
};
constexpr std::array kWanted{
    Wanted{kTagTensors, Region::tables, true}, Wanted{kTagSegments, Region::tables, true},
    Wanted{kTagMeta, Region::tables, true},    Wanted{kTagRope, Region::tables, false},
    Wanted{kTagLayers, Region::tables, false}, Wanted{kTagTokenizer, Region::tokenizer, false},
};

/// Returns the read of this number if it was handed out and has not been completed, or null.
template <class Read>
Read* under_way(std::span<Read> reads, std::uint32_t i) {
  if (i >= reads.size()) return nullptr;
  Read& read = reads[i];
  return read.issued.load(std::memory_order_acquire) && !read.done.load(std::memory_order_acquire) ? &read : nullptr;
}

}  // namespace

template <class Take>
Status Opening::reserve(Take take) {
  Arena dry = Arena::dry(*arena_);
  QSF_TRY(take(dry));
  if (dry.used() > arena_->size()) return too_small(dry.used());
  return take(*arena_);
}

Error Opening::too_small(std::uint64_t arena_bytes) const {
  return budget_.refusal("this model", budget_.outside() + arena_bytes, " for its tables and tokenizer alone");
}

Status Opening::begin(Arena& arena, const Budget& budget, std::uint64_t file_size, Model& model) {
  arena_ = &arena;
  model_ = &model;
  budget_ = budget;
  file_size_ = file_size;
  QSF_TRY(reserve([&](Arena& a) { return a.take(header_, kHeaderSize, Region::tables); }));
  ask(0, header_);
  return {};
}

void Opening::ask(std::uint64_t offset, std::span<std::byte> into, std::optional<std::uint32_t> crc) {
  const auto size = static_cast<std::uint32_t>(into.size());
  Read& read = reads_[n_reads_];
  read.request = {offset, size, kTicket | n_reads_, into.data(), crc.value_or(0), crc.has_value()};
  read.issued = read.done = false;
  ++n_reads_;
  bytes_requested_ += size;
}

Result<Step> Opening::step() {
  if (failed_.load(std::memory_order_acquire)) return error_;
  for (std::uint32_t i = 0; i < n_reads_; ++i) {
    if (!reads_[i].done.load(std::memory_order_acquire)) return Step::need_bytes;
  }
  n_reads_ = 0;
  const Status status = advance();
  if (!status && status.error().code == ErrorCode::out_of_memory) return too_small(arena_->refused());
  QSF_TRY(status);
  return phase_ == Phase::done ? Step::ready : Step::working;
}

Status Opening::advance() {
  switch (phase_) {
    case Phase::header:
      phase_ = Phase::front;
      return ask_front();
    case Phase::front:
      phase_ = Phase::sections;
      return ask_sections();
    case Phase::sections:
    case Phase::done:
      break;
  }
  QSF_TRY(read_tables());
  QSF_LET(config, read_model());
  model_->config = config;
  QSF_TRY(plan_memory());
  finish();
  phase_ = Phase::done;
  return {};
}

Status Opening::ask_front() {
  QSF_LET(header, read_header(header_, file_size_));
  model_->tables.header = header;
  QSF_TRY(reserve([&](Arena& a) -> Status {
    QSF_TRY(a.take(directory_, std::uint64_t{header.n_sections} * kSectionEntrySize, Region::tables));
    QSF_TRY(a.take(index_, std::uint64_t{header.n_layers} * kLayerEntrySize, Region::tables));
    QSF_TRY(a.take(sections_, header.n_sections, Region::tables));
    return a.take(layers_, header.n_layers, Region::tables);
  }));
  ask(header.directory_offset, directory_, header.directory_crc);
  ask(header.layer_index_offset, index_, header.layer_index_crc);
  return {};
}

Status Opening::ask_sections() {
  const Header& h = model_->tables.header;
  QSF_TRY(read_directory(h, directory_, file_size_, sections_));
  QSF_TRY(read_layer_index(h, index_, file_size_, layers_));
  QSF_TRY(reserve([&](Arena& a) -> Status {
    std::array<std::uint64_t, kSections> size{};
    for (std::size_t i = 0; i < kSections; ++i) {
      const SectionEntry* entry = find_section(sections_, kWanted[i].tag);
      size[i] = entry != nullptr ? entry->size : 0;
      if (size[i] == 0 && kWanted[i].needed) {
        return make_error(ErrorCode::bad_section, "the file has no {} section", TagName(kWanted[i].tag).text);
      }
      QSF_TRY(a.take(bytes_[i], size[i], kWanted[i].region));
    }
    QSF_TRY(a.take(tensors_, size[kTensors] / kTensorEntrySize, Region::tables));
    QSF_TRY(a.take(segments_, size[kSegments] / kSegmentEntrySize, Region::tables));
    QSF_TRY(a.take(divisors_, size[kRope] / sizeof(float), Region::tables));
    QSF_TRY(a.take(of_layer_, h.n_layers, Region::tables));
    QSF_TRY(a.take(needs_, segments_.size(), Region::tables));
    QSF_TRY(a.take(pinned_, segments_.size(), Region::tables));
    QSF_TRY(a.take(model_->candidates, h.vocab_size, Region::logits));
    return a.take(model_->tokenizer_scratch, size[kTokenizer] != 0 ? Tokenizer::kScratchBytes : 0, Region::tokenizer);
  }));
  for (std::size_t i = 0; i < kSections; ++i) {
    const SectionEntry* entry = find_section(sections_, kWanted[i].tag);
    if (!bytes_[i].empty()) ask(entry->offset, bytes_[i], entry->crc);
  }
  return {};
}

/// Reads the file's tables, and checks each by itself and all against each other.
Status Opening::read_tables() {
  FileTables& tables = model_->tables;
  const Header& h = tables.header;
  QSF_TRY(read_tensors(h, bytes_[kTensors], tensors_));
  QSF_TRY(read_segments(h, bytes_[kSegments], file_size_, segments_));
  QSF_LET(n_kinds, count_kinds(h, bytes_[kLayers]));
  QSF_TRY(arena_->take(kinds_, n_kinds, Region::tables));
  QSF_LET(kind, read_layer_table(h, bytes_[kMeta], bytes_[kLayers], kinds_, of_layer_));
  tables.layers = layers_;
  tables.tensors = tensors_;
  tables.segments = segments_;
  model_->config.table = {kind, kinds_, of_layer_};
  return check_tables(h, model_->config.table, layers_, tensors_, segments_);
}

Result<Config> Opening::read_model() {
  const Header& h = model_->tables.header;
  if (!bytes_[kRope].empty()) QSF_TRY(read_rope(h, bytes_[kRope], divisors_));
  QSF_LET(config, read_config(h, bytes_[kMeta], model_->config.table, divisors_));
  model_->meta = bytes_[kMeta];
  if (!bytes_[kTokenizer].empty()) {
    QSF_LET(tokenizer, Tokenizer::open(bytes_[kTokenizer], config.vocab_size));
    model_->tokenizer = tokenizer;
  }
  return config;
}

/// Returns the bytes of a session with these options and this plan, before pins.
std::uint64_t Opening::bytes_of(const Plan& plan, const OpenOptions& options) const {
  Arena dry = Arena::dry(*arena_);
  Planned measured;
  const Status status = measured.init(dry, *model_, options, plan, {});
  return status ? budget_.outside() + dry.used() : ~std::uint64_t{0};
}

Status Opening::plan_memory() {
  Model& m = *model_;
  QSF_TRY(m.weights.init(*arena_, m.tables));
  if (m.weights.has(0, Role::pos_embd) && m.options.max_seq_len > m.config.max_seq_len) {
    return make_error(ErrorCode::bad_argument, "the model has {} positions, and a context of {} was asked for",
                      m.config.max_seq_len, m.options.max_seq_len);
  }
  QSF_TRY(m.program.init(*arena_, m.config, m.weights, m.options.watched));
  QSF_TRY(check_policy());
  QSF_TRY(check_guesses());
  for (std::uint32_t i = 0; i < segments_.size(); ++i) {
    needs_[i] = {segment_buffer_bytes(m.tables, i), (segments_[i].flags & kSegmentVectors) != 0,
                 segments_[i].stage == 0};
    needs_[i].read = segments_[i].stored_size;
    needs_[i].computed = segments_[i].raw_size;
    needs_[i].uses = 0;
    if (!needs_[i].vectors) largest_ = std::max(largest_, needs_[i].bytes);
  }
  for (const std::uint32_t i : m.program.schedule()) {
    needs_[i].lookup = false;
    ++needs_[i].uses;
  }
  for (const ScheduleRange& range : m.program.swept()) {  // these rows are not multiplied
    for (std::uint32_t p = range.begin; p < range.end; ++p) {
      SegmentNeed& need = needs_[m.program.schedule()[p]];
      if (need.uses == 1) need.computed = 0;
    }
  }
  count_guesses();
  const auto of_used = [&](std::uint32_t bytes) {
    return static_cast<std::uint32_t>(std::uint64_t{bytes} * m.program.most_used() / m.program.most_experts());
  };
  for (const ScheduleRange& range : m.program.chosen()) {
    for (std::uint32_t p = range.begin; p < range.end; ++p) {
      SegmentNeed& need = needs_[m.program.schedule()[p]];
      need.chosen = true;
      need.read = of_used(need.read);
      need.computed = of_used(need.computed);
    }
  }
  for (std::uint32_t i = 0; i < segments_.size(); ++i) {
    SegmentNeed& need = needs_[i];
    m.weight_bytes += need.unused ? 0 : segments_[i].raw_size;
    if (need.lookup) need.read = need.computed = 0;  // one row
    if (need.unused) {
      need = {.bytes = 0, .uses = 0, .unused = true};
      continue;
    }
    if (stays_in_file(m.tables, i, m.options.mapped)) {
      need.bytes = 0;
      need.lookup = need.chosen = false;
    }
  }
  PlanInput in;
  in.budget = budget_;
  in.segments = needs_;
  in.measure = {this, [](const void* context, const Plan& plan) {
                  const Opening& o = *static_cast<const Opening*>(context);
                  return o.bytes_of(plan, o.model_->options);
                }};
  in.plain = {this, [](const void* context, const Plan& plan) {
                const Opening& o = *static_cast<const Opening*>(context);
                Plan plain = plan;
                plain.slot_bytes = align_up(o.largest_);
                OpenOptions options;
                options.kv_window = o.model_->options.kv_window;
                options.kv_sinks = o.model_->options.kv_sinks;
                options.kv_chosen = o.model_->options.kv_chosen;
                return o.bytes_of(plain, options);
              }};
  in.one_pass = m.config.table.bidirectional();
  in.finest_kv = finest_kv();
  const std::uint32_t long_from = m.config.table.model.long_rope_from;
  in.model_seq_len = long_from != 0 ? std::min(long_from, m.config.max_seq_len) : m.config.max_seq_len;
  in.sequences = m.options.sequences;
  constexpr std::uint32_t kMostNeeded = 32;
  in.columns = std::min(in.sequences * (m.options.guesses != 0 ? 2 : 1), kMostNeeded);
  in.max_seq_len = m.options.max_seq_len;
  in.chunk = m.options.chunk;
  in.ring_slots = m.options.ring_slots;
  in.kv = m.options.kv ? static_cast<int>(*m.options.kv) : -1;
  in.stream_all = m.options.stream_all;
  in.keeps_rows = !m.options.watched;
  in.speed = {m.options.read_rate * 1e6, m.options.compute_rate * 1e6};
  QSF_LET(plan, make_plan(in, pinned_));
  m.plan = plan;
  weigh_guesses();
  m.program.set_context(plan.max_seq_len);
  m.n_segments = static_cast<std::uint32_t>(std::ranges::count(needs_, false, &SegmentNeed::unused));
  m.n_pinned = static_cast<std::uint32_t>(std::ranges::count(pinned_, true));
  warn();
  QSF_TRY(m.init(*arena_, m, m.options, plan, pinned_));
  if ((!m.options.guess_by_layers && !m.options.guess_by_head) || m.guesses != 0) return {};
  return make_error(ErrorCode::unsupported, "guesses by {} are of no use: {}",
                    m.options.guess_by_head ? "the head" : "layers", no_guesses(plan.chunk));
}

/// Checks the options of guesses by the model itself, and sets the number of layers that guess if none was asked for.
Status Opening::check_guesses() {
  OpenOptions& o = model_->options;
  const Config& config = model_->config;
  if (!o.guess_by_layers && o.guess_layers != 0) {
    return make_error(ErrorCode::bad_argument, "guess_layers is {}, but guess_by_layers is not set", o.guess_layers);
  }
  if (!o.guess_by_layers && !o.guess_by_head) return {};
  const char* const name = o.guess_by_layers ? "guess_by_layers" : "guess_by_head";
  const bool both = o.guess_by_layers && o.guess_by_head;
  if (o.guesses == 0 || o.guess_source != GuessSource::text || both) {
    return make_error(ErrorCode::bad_argument,
                      "{} needs guesses, the most tokens to guess, and no other source of them", name);
  }
  if (o.guess_by_head) {
    if (config.guess_stage != 0) return {};
    return make_error(ErrorCode::unsupported,
                      "the model has no layer for further tokens, so its head cannot guess (guess_by_head)");
  }
  if (config.n_layers < 2 || o.guess_layers >= config.n_layers) {
    return make_error(ErrorCode::bad_argument, "{} layers are to guess (guess_layers), and the model has {}: fewer can",
                      o.guess_layers, config.n_layers);
  }
  if (o.guess_layers == 0) o.guess_layers = (config.n_layers + 3) / 4;
  return {};
}

/// Returns the ranges of the schedule that passes which guess use: the first layers and the head, which are empty
/// without such passes, and the layer that guesses, which is there if the model has it.
std::array<ScheduleRange, 3> Opening::guess_ranges() const {
  const Program& program = model_->program;
  const OpenOptions& o = model_->options;
  const std::uint32_t head = program.head_stage(), own = program.guess_stage();
  std::array<ScheduleRange, 3> out{};
  if (o.guess_by_layers) out[0] = program.range(1, 1 + o.guess_layers);
  if (o.guess_by_layers || o.guess_by_head) out[1] = program.range(head, head + 1);
  if (own != 0) out[2] = program.range(own, own + 1);
  return out;
}

/// Counts the uses of passes that guess, of which each makes one guess. Without them the layer that guesses is unused.
void Opening::count_guesses() {
  const std::uint32_t own = model_->options.guess_by_head ? 0 : model_->program.guess_stage();
  for (const ScheduleRange& range : guess_ranges()) {
    for (std::uint32_t p = range.begin; p < range.end; ++p) {
      const std::uint32_t segment = model_->program.schedule()[p];
      ++needs_[segment].uses;
      needs_[segment].unused = own != 0 && segments_[segment].stage == own;
    }
  }
}

/// Sets the work of a pass and of a guess by the plan, in which each pass has one guess.
void Opening::weigh_guesses() {
  Model& m = *model_;
  double computed = 0, read = 0, own = 0;  // bytes that a guess needs; the layer that guesses has `own` of them
  for (const ScheduleRange& range : guess_ranges()) {
    own = 0;
    for (std::uint32_t p = range.begin; p < range.end; ++p) {
      const std::uint32_t segment = m.program.schedule()[p];
      const SegmentNeed& need = needs_[segment];
      own += need.computed;
      read += pinned_[segment] ? 0 : need.read;
    }
    computed += own;
  }
  const double of_pass = m.plan.bytes_computed - own;
  m.pass_work = of_pass + kReadWork * (m.plan.bytes_read - read);
  m.column_work = kColumnWork * of_pass;
  const GuessSource source = m.guess_source();
  if (source != GuessSource::host) m.set_guess_work(source == GuessSource::text ? 0 : computed + kReadWork * read);
}

/// Checks that the model has something to evict, and that the policy is exact for it.
Status Opening::check_policy() const {
  const OpenOptions& o = model_->options;
  const bool chooses = o.kv_chosen != 0;
  if (o.kv_window == 0 && o.kv_sinks == 0 && !chooses) return {};
  if (o.kv_window == 0 || (chooses && o.kv_sinks != 0)) {
    return make_error(ErrorCode::bad_argument,
                      "kv_window is {}, kv_sinks {} and kv_chosen {}: kv_sinks and kv_chosen exclude each other and "
                      "need kv_window",
                      o.kv_window, o.kv_sinks, o.kv_chosen);
  }
  if (chooses && o.kv_window < kFewestChosen) {
    return make_error(ErrorCode::bad_argument,
                      "attention chooses among at least {} positions (kv_window), and {} are to stay", kFewestChosen,
                      o.kv_window);
  }
  if (model_->config.table.bidirectional()) {
    return make_error(ErrorCode::unsupported, "a text is one pass in this model, from which no position is evicted");
  }
  bool evicts = false;
  for (const LayerKind& kind : kinds_) {
    const MemoryNeed need = mixer_row(kind.mixer).memory(kind, model_->config.dim);
    if (need.n_kv_heads == 0 || need.window != 0) continue;
    evicts = true;
    if (kind.alibi != 0 && (o.kv_sinks != 0 || chooses)) {
      return make_error(ErrorCode::unsupported,
                        "this model scores positions by their distances (ALiBi), which need a whole window: only the "
                        "last positions can be kept");
    }
    if (kind.kv_from != 0 && chooses) {
      return make_error(
          ErrorCode::unsupported,
          "layers of this model share keys and values, which only one of them could choose: the first and "
          "last positions can be kept");
    }
  }
  if (evicts) return {};
  return make_error(ErrorCode::unsupported,
                    "no layer of this model keeps all positions, so there is nothing for a policy to evict");
}

/// Notes losses of quality that the caller did not ask for, or may not know, and the chunk that a text needs which is
/// one pass.
void Opening::warn() {
  Model& m = *model_;
  const Plan& p = m.plan;
  if (m.config.table.bidirectional() && p.max_seq_len == m.options.chunk && m.options.max_seq_len == 0) {
    format_into(m.longer_chunk, "a chunk of {} (chunk) or a shorter text", m.config.max_seq_len);
  }
  const bool coarse = p.kv_why == Why::budget, beyond = p.max_seq_len > m.config.max_seq_len;
  if (coarse) {
    m.warning = make_error(
        ErrorCode::budget_too_small,
        "keys and values are kept in {}, and text may get worse: in {} a context of {} needs {:.2f} MiB, and the "
        "budget is {:.2f} MiB",
        kv_name(p.kv), kv_name(finest_kv()), p.kv_positions, Budget::enough_mib(p.finest_kv_budget),
        Budget::mib(budget_.bytes()));
  }
  if (beyond) {
    m.warning = make_error(ErrorCode::bad_argument,
                           "{}{}the model was made for {} tokens of context; beyond, text may get worse",
                           m.warning.sentence, coarse ? "; " : "", m.config.max_seq_len);
  }
}

/// Returns the precision of keys and values that the weights deserve.
KvType Opening::finest_kv() const {
  const bool exact = model_->tables.header.quant == static_cast<std::uint8_t>(FormatId::f32);
  return exact || model_->config.table.bidirectional() ? KvType::f32 : KvType::f16;
}

void Opening::finish() {
  Model& m = *model_;
  Sha256 sha;
  for (const std::span<std::byte> bytes : {header_, directory_, index_, bytes_[kTensors], bytes_[kSegments]}) {
    sha.update(bytes);
  }
  m.hash.set(sha.digest());
  m.hash.is_known = !m.options.vouched;
  for (std::size_t i = 0; i < kRegionNames.size(); ++i) {
    const auto region = static_cast<Region>(i);
    const std::uint64_t bytes = region == Region::host    ? budget_.outside() - m.options.draft_bytes
                                : region == Region::draft ? m.options.draft_bytes
                                                          : arena_->used(region);
    if (bytes != 0) m.map.add(region, bytes);
  }
  m.map.add(Region::free, arena_->size() - arena_->used());
}

std::optional<ReadRequest> Opening::next_request() {
  for (std::uint32_t i = 0; i < n_reads_; ++i) {
    if (!reads_[i].issued.exchange(true)) return reads_[i].request;
  }
  return std::nullopt;
}

Status Opening::complete(std::uint32_t ticket) {
  Read* read = under_way(std::span(reads_).first(n_reads_), ticket & ~kTicket);
  if (read == nullptr) return make_error(ErrorCode::bad_argument, "ticket {} was not asked for", ticket);
  const ReadRequest& r = read->request;
  if (const std::uint32_t crc = r.has_crc ? crc32({r.into, r.size}) : 0; crc != r.crc) {
    const Error error = make_error(ErrorCode::bad_checksum,
                                   "the {} bytes at {} have CRC-32 {:08x}, not the {:08x} that the file states", r.size,
                                   r.offset, crc, r.crc);
    fail(ticket, error);
    return error;
  }
  read->done.store(true, std::memory_order_release);
  return {};
}

void Opening::fail(std::uint32_t ticket, const Error& error) {
  if (under_way(std::span(reads_).first(n_reads_), ticket & ~kTicket) == nullptr) return;
  if (keeping_.test_and_set(std::memory_order_acquire)) return;  // only the first error is reported
  error_ = error;
  failed_.store(true, std::memory_order_release);
}

}  // namespace qsf
