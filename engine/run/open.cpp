// Opening: header, then directory and layer index, then the sections, then the plan. Weights are not read here.
#include <algorithm>
#include <new>

#include "qsf/base/try.h"
#include "run/session_impl.h"

namespace qsf {
namespace {

/// Alignment of the pieces taken after the plan was made.
constexpr std::uint64_t kSlack = 64 * kAlignment;

}  // namespace

std::string_view instruction_set(std::size_t index) {
  const std::span<const Kernels* const> available = available_kernels();
  return index < available.size() ? available[index]->isa : std::string_view{};
}

Result<Session*> open_session(std::span<std::byte> memory, std::uint64_t budget, std::uint64_t file_size,
                              const OpenOptions& options) {
  const Kernels* kernels = options.isa.empty() ? &best_kernels() : find_kernels(options.isa);
  if (kernels == nullptr) {
    return make_error(ErrorCode::bad_argument, "this machine or build has no instruction set '{}'", options.isa);
  }
  if (file_size < kHeaderSize) {
    return make_error(ErrorCode::truncated, "the file has {} bytes, less than a QSF header", file_size);
  }
  Arena arena(memory);
  const auto session = arena.take<Session>(1, Region::session);
  const auto impl = arena.take<Session::Impl>(1, Region::session);
  const auto header = arena.take<std::byte>(kHeaderSize, Region::tables);
  if (!session || !impl || !header) {
    constexpr std::uint64_t least = kHostReserve + sizeof(Session) + sizeof(Session::Impl) + kSlack;
    return make_error(ErrorCode::budget_too_small, "any model needs at least {:.2f} MiB, and the budget is {:.2f} MiB",
                      static_cast<double>(least) / (1 << 20) + 0.005, static_cast<double>(budget) / (1 << 20));
  }
  Session::Impl* i = new (impl->data()) Session::Impl;
  i->arena = arena;
  i->budget = budget;
  i->file_size = file_size;
  i->options = options;
  i->options.isa = kernels->isa;  // the caller's string need not outlive the call
  i->kernels = kernels;
  i->header_bytes = *header;
  i->read(0, kHeaderSize, header->data());
  Session* s = new (session->data()) Session;
  s->impl_ = i;
  return s;
}

void Session::Impl::read(std::uint64_t offset, std::uint32_t size, std::byte* into) {
  Read& r = reads[n_reads];
  r.request = {offset, size, kOpeningTicket | n_reads, into, 0, false};
  r.issued = r.done = false;
  ++n_reads;
  opening_bytes += size;
}

void Session::Impl::read(std::uint64_t offset, std::uint32_t size, std::byte* into, std::uint32_t crc) {
  read(offset, size, into);
  reads[n_reads - 1].request.crc = crc;
  reads[n_reads - 1].request.has_crc = true;
}

bool Session::Impl::reads_done() const {
  return std::all_of(reads.begin(), reads.begin() + n_reads,
                     [](const Read& r) { return r.done.load(std::memory_order_acquire); });
}

Status Session::Impl::open_step() {
  n_reads = 0;
  switch (opening) {
    case Opening::header:
      opening = Opening::front;
      return ask_front();
    case Opening::front:
      opening = Opening::sections;
      return ask_sections();
    case Opening::sections:
    case Opening::planned:
      opening = Opening::planned;
      return plan_memory();
  }
  return {};
}

Status Session::Impl::ask_front() {
  const Result<Header> header = read_header(header_bytes, file_size);
  if (!header) return header.error();
  tables.header = *header;
  const auto directory = arena.take<std::byte>(std::uint64_t{header->n_sections} * kSectionEntrySize, Region::tables);
  const auto index = arena.take<std::byte>(std::uint64_t{header->n_layers} * kLayerEntrySize, Region::tables);
  const auto section_entries = arena.take<SectionEntry>(header->n_sections, Region::tables);
  const auto layer_entries = arena.take<LayerEntry>(header->n_layers, Region::tables);
  if (!directory) return directory.error();
  if (!index) return index.error();
  if (!section_entries) return section_entries.error();
  if (!layer_entries) return layer_entries.error();
  directory_bytes = *directory;
  index_bytes = *index;
  sections = *section_entries;
  layers = *layer_entries;
  read(header->directory_offset, static_cast<std::uint32_t>(directory_bytes.size()), directory_bytes.data(),
       header->directory_crc);
  read(header->layer_index_offset, static_cast<std::uint32_t>(index_bytes.size()), index_bytes.data(),
       header->layer_index_crc);
  return {};
}

Status Session::Impl::ask_sections() {
  const Header& h = tables.header;
  QSF_TRY(read_directory(h, directory_bytes, file_size, sections));
  QSF_TRY(read_layer_index(h, index_bytes, file_size, layers));

  struct Wanted {
    std::uint32_t tag;
    std::span<std::byte>* to;
    Region region;
    const char* name;
    bool needed;
  };
  for (const Wanted& w : {Wanted{kTagTensors, &tensor_bytes, Region::tables, "TENS", true},
                          Wanted{kTagSegments, &segment_bytes, Region::tables, "SEGS", true},
                          Wanted{kTagMeta, &meta_bytes, Region::tables, "META", true},
                          Wanted{kTagRope, &rope_bytes, Region::tables, "ROPE", false},
                          Wanted{kTagTokenizer, &tokenizer_bytes, Region::tokenizer, "TOKN", false}}) {
    const SectionEntry* entry = find_section(sections, w.tag);
    if (entry == nullptr || entry->size == 0) {
      if (w.needed) return make_error(ErrorCode::bad_section, "the file has no {} section", w.name);
      continue;
    }
    const auto bytes = arena.take<std::byte>(entry->size, w.region);
    if (!bytes) return bytes.error();
    *w.to = *bytes;
    read(entry->offset, entry->size, bytes->data(), entry->crc);
  }
  return {};
}

/// The arena is full before a plan can be made: says what the tables alone ask for. The header's sizes were checked.
Error Session::Impl::tables_too_large() const {
  const Header& h = tables.header;
  std::uint64_t need = kHostReserve + sizeof(Session) + sizeof(Impl) + kHeaderSize + kSlack +
                       std::uint64_t{h.n_sections} * (kSectionEntrySize + sizeof(SectionEntry)) +
                       std::uint64_t{h.n_layers} * (kLayerEntrySize + sizeof(LayerEntry)) +
                       std::uint64_t{h.vocab_size} * (sizeof(Candidate) + sizeof(float));
  for (const SectionEntry& section : sections) {
    const bool entries = section.tag == kTagTensors || section.tag == kTagSegments;
    need += section.size * (entries ? std::uint64_t{2} : 1);
    if (section.tag == kTagTokenizer) need += Tokenizer::kScratchBytes;
  }
  const double mib = 1 << 20;
  return make_error(
      ErrorCode::budget_too_small,
      "this model needs at least {:.2f} MiB for its tables and tokenizer alone, and the budget is {:.2f} MiB",
      static_cast<double>(std::max(need, budget + 1)) / mib + 0.005, static_cast<double>(budget) / mib);
}

Status Session::Impl::plan_memory() {
  const Header& h = tables.header;
  const auto tensor_entries = arena.take<TensorEntry>(tensor_bytes.size() / kTensorEntrySize, Region::tables);
  if (!tensor_entries) return tensor_entries.error();
  const auto segment_entries = arena.take<SegmentEntry>(segment_bytes.size() / kSegmentEntrySize, Region::tables);
  if (!segment_entries) return segment_entries.error();
  tensors = *tensor_entries;
  segments = *segment_entries;
  QSF_TRY(read_tensors(h, tensor_bytes, tensors));
  QSF_TRY(read_segments(h, segment_bytes, file_size, segments));
  QSF_TRY(check_tables(h, layers, tensors, segments));
  tables.layers = layers;
  tables.tensors = tensors;
  tables.segments = segments;

  const Result<Config> read = read_config(h, meta_bytes);
  if (!read) return read.error();
  config = *read;
  std::span<const float> divisors;
  if (!rope_bytes.empty()) {
    if (rope_bytes.size() != config.head_dim / 2 * sizeof(float)) {
      return make_error(ErrorCode::bad_section, "the ROPE section has {} bytes, not the {} of {} divisors",
                        rope_bytes.size(), config.head_dim / 2 * sizeof(float), config.head_dim / 2);
    }
    divisors = {reinterpret_cast<const float*>(rope_bytes.data()), config.head_dim / 2};
    for (const float divisor : divisors) {
      if (!(divisor > 0.0f && divisor < 1e9f)) {
        return make_error(ErrorCode::bad_section, "a RoPE divisor is {}, not in (0, 1e9)", divisor);
      }
    }
  }
  if (!tokenizer_bytes.empty()) {
    const Result<Tokenizer> opened = Tokenizer::open(tokenizer_bytes, config.vocab_size);
    if (!opened) return opened.error();
    tokenizer = *opened;
    const auto scratch = arena.take<std::byte>(Tokenizer::kScratchBytes, Region::tokenizer);
    if (!scratch) return scratch.error();
    tokenizer_scratch = *scratch;
  }
  QSF_TRY(weights.init(arena, tables, config));
  const auto sampled = arena.take<Candidate>(config.vocab_size, Region::logits);
  if (!sampled) return sampled.error();
  candidates = *sampled;
  const auto needs = arena.take<SegmentNeed>(segments.size(), Region::tables);
  const auto pinned = arena.take<bool>(segments.size(), Region::tables);
  if (!needs) return needs.error();
  if (!pinned) return pinned.error();
  for (std::uint32_t i = 0; i < segments.size(); ++i) {
    (*needs)[i] = {segment_buffer_bytes(tables, i), (segments[i].flags & kSegmentVectors) != 0,
                   segments[i].section == 0 && !config.tied};
    weight_bytes += segments[i].raw_size;
  }

  const std::uint64_t logits_row = std::uint64_t{config.vocab_size} * sizeof(float);
  PlanInput in;
  in.budget = budget;
  in.segments = *needs;
  in.fixed = kHostReserve + arena.used() + Streamer::fixed_bytes(tables) + Forward::fixed_bytes(config) + kSlack +
             (options.all_logits ? 0 : logits_row);
  for (std::size_t type = 0; type < kKvNames.size(); ++type) {
    in.kv_per_position[type] =
        KvCache::bytes_per_position(config, static_cast<KvType>(type)) + Forward::score_bytes_per_position(config);
  }
  in.scratch_per_position = sizeof(std::uint32_t);
  in.scratch_per_column = Forward::bytes_per_column(config) + (options.all_logits ? logits_row : 0);
  in.embedding_row = Forward::embedding_row_bytes(config);
  in.finest_kv = h.quant == static_cast<std::uint8_t>(FormatId::f32) ? KvType::f32 : KvType::f16;
  in.model_seq_len = config.max_seq_len;
  in.window = Forward::kept_positions(config);
  in.max_seq_len = options.max_seq_len;
  in.chunk = options.chunk;
  in.ring_slots = options.ring_slots;
  in.kv = options.kv ? static_cast<int>(*options.kv) : -1;
  in.stream_all = options.stream_all;
  const Result<Plan> made = make_plan(in, *pinned);
  if (!made) return made.error();
  plan = *made;
  n_pinned = static_cast<std::uint32_t>(std::count(pinned->begin(), pinned->end(), true));

  const auto sequence = arena.take<std::uint32_t>(plan.max_seq_len, Region::activations);
  if (!sequence) return sequence.error();
  tokens = *sequence;
  QSF_TRY(streamer.init(arena, tables, plan, *pinned, weights.order(), weights.n_head()));
  QSF_TRY(forward.init(arena, config, weights, streamer, *kernels, options.workers, plan, divisors,
                       options.all_logits ? plan.chunk : 1));

  Sha256 sha;
  for (const std::span<std::byte> bytes : {header_bytes, directory_bytes, index_bytes, tensor_bytes, segment_bytes}) {
    sha.update(bytes);
  }
  model_hash = hex(sha.digest());
  for (std::size_t i = 0; i < kRegionNames.size(); ++i) {
    const auto region = static_cast<Region>(i);
    const std::uint64_t bytes = region == Region::host   ? kHostReserve
                                : region == Region::free ? budget - kHostReserve - arena.used()
                                                         : arena.used(region);
    if (bytes != 0 || region == Region::free) map[n_map++] = {region, bytes};
  }
  open = true;
  return {};
}

}  // namespace qsf
