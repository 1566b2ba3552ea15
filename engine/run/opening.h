// Opening: header, then directory and layer index, then the sections, then the plan. Weights are not read here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/arena.h"
#include "run/model.h"

namespace qsf {

/// One thread steps; complete and fail may come from one other.
class Opening {
 public:
  static constexpr std::uint32_t kTicket = 1u << 31;  // tickets of an opening's reads have this bit

  /// The arena and the model must outlive this.
  Status begin(Arena& arena, std::uint64_t budget, std::uint64_t file_size, Model& model);
  /// need_bytes, working, ready once the model stands, or an error.
  Result<Step> step();

  std::optional<ReadRequest> next_request();
  Status complete(std::uint32_t ticket);
  void fail(std::uint32_t ticket, const Error& error);
  std::uint64_t bytes_requested() const { return bytes_requested_; }

 private:
  enum class Stage : std::uint8_t { header, front, sections, done };
  struct Read {
    ReadRequest request;
    std::atomic<bool> issued{false}, done{false};
  };
  /// Sections that are read, in the order of kWanted.
  enum Section : std::size_t { kTensors, kSegments, kMeta, kRope, kLayers, kTokenizer, kSections };

  Status advance();
  Status ask_front();
  Status ask_sections();
  Status read_tables();
  Result<Config> read_model();
  Status plan_memory();
  void finish();
  void ask(std::uint64_t offset, std::span<std::byte> into, std::optional<std::uint32_t> crc = {});
  /// Runs `take` over a dry arena, refuses a budget that is too small for it, then runs it in earnest.
  template <class Take>
  Status reserve(Take take);
  Error too_small(std::uint64_t arena_bytes) const;

  Arena* arena_ = nullptr;
  Model* model_ = nullptr;
  std::uint64_t budget_ = 0, file_size_ = 0, bytes_requested_ = 0;
  Stage stage_ = Stage::header;
  std::array<Read, 8> reads_;
  std::uint32_t n_reads_ = 0;
  std::atomic<bool> failed_{false};
  std::atomic_flag keeping_;  // guards error_ against two failures at once
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
