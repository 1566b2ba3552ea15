// The opening of a model: header, then directory and layer index, then sections, then the plan. It reads no weights.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/arena.h"
#include "qsf/base/budget.h"
#include "run/model.h"

namespace qsf {

/// One thread calls step(). One other may call complete() and fail().
class Opening {
 public:
  static constexpr std::uint32_t kTicket = 1u << 31;  // the bit in tickets of an opening's reads

  /// The arena and the model must outlive this object. Fails with budget_too_small.
  Status begin(Arena& arena, const Budget& budget, std::uint64_t file_size, Model& model);
  /// Returns need_bytes, working, or ready once the model is open; or an error of the file or the plan.
  Result<Step> step();

  std::optional<ReadRequest> next_request();
  Status complete(std::uint32_t ticket);
  void fail(std::uint32_t ticket, const Error& error);
  std::uint64_t bytes_requested() const { return bytes_requested_; }
  const Budget& budget() const { return budget_; }
  std::uint64_t file_size() const { return file_size_; }

 private:
  enum class Phase : std::uint8_t { header, front, sections, done };
  struct Read {
    ReadRequest request;
    std::atomic<bool> issued{false}, done{false};
  };
  /// The sections that are read, in the order of kWanted.
  enum Section : std::size_t { kTensors, kSegments, kMeta, kRope, kLayers, kTokenizer, kSections };

  Status advance();
  Status ask_front();
  Status ask_sections();
  Status read_tables();
  Result<Config> read_model();
  Status plan_memory();
  std::uint64_t bytes_of(const Plan& plan, const OpenOptions& options) const;
  Status check_policy() const;
  Status check_guesses();
  std::array<ScheduleRange, 3> guess_ranges() const;
  void count_guesses();
  void weigh_guesses();
  KvType finest_kv() const;
  void warn();
  void finish();
  void ask(std::uint64_t offset, std::span<std::byte> into, std::optional<std::uint32_t> crc = {});
  /// Calls `take` with a dry arena, fails with budget_too_small if that is too much, then calls it with the arena.
  template <class Take>
  Status reserve(Take take);
  Error too_small(std::uint64_t arena_bytes) const;

  Arena* arena_ = nullptr;
  Model* model_ = nullptr;
  Budget budget_;
  std::uint64_t file_size_ = 0, bytes_requested_ = 0;
  std::uint64_t largest_ = 0;  // bytes of the largest buffer of a matrix's segment, if no file is mapped
  Phase phase_ = Phase::header;
  std::array<Read, 8> reads_;
  std::uint32_t n_reads_ = 0;
  std::atomic<bool> failed_{false};
  std::atomic_flag keeping_;  // lets only the first failure write error_
  Error error_;
  std::span<std::byte> header_, directory_, index_;
  std::array<std::span<std::byte>, kSections> bytes_;
  std::span<SectionEntry> sections_;
  std::span<LayerEntry> layers_;
  std::span<TensorEntry> tensors_;
  std::span<SegmentEntry> segments_;
  std::span<LayerKind> kinds_;
  std::span<std::uint8_t> of_layer_;
  std::span<float> divisors_;
  std::span<SegmentNeed> needs_;
  std::span<bool> pinned_;
};

}  // namespace qsf
