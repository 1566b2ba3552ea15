// A .qsf file that never exists as a whole: any range of it is computed from a model's files when it is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/plan/plan.h"
#include "qsf/base/result.h"
#include "qsf/file/file_plan.h"

namespace qsf::convert {

/// The tables of a made file, as they were stored in an earlier process.
struct KeptFront {
  std::span<const std::byte> front;       // as MadeFile::take_front() returned it, with later tables
  std::span<const std::uint8_t> checked;  // [segments]: 1 if the tables have the segment's checksum
  std::uint64_t size = 0;                 // of the whole file
};

/// A made file reads nothing itself. A segment is made in steps. A step names runs of the model's files; the host reads
/// them, those of stored rows to their place in the segment and all others to wherever the Inputs of the model find
/// them; then make() completes the step. Functions are const or say which threads may call them.
class MadeFile {
 public:
  /// Plans the file that qsf-convert would write without compression. Takes the model's tokenizer and texts, which are
  /// large, and keeps its tensors. Errors are those of plan_file and FilePlan::make. `options` must not ask for GGUF,
  /// compression or a search of codes.
  static Result<std::unique_ptr<MadeFile>> plan(LoadedModel model, const Options& options);
  /// Does the same with an earlier front, from a model without tokenizer. Returns bad_input if the front is not the
  /// model's.
  static Result<std::unique_ptr<MadeFile>> restore(LoadedModel model, const Options& options, const KeptFront& kept);

  const FilePlan& plan() const { return plan_; }
  /// Returns sentences on the model, and on types that change.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Returns the front without checksums of segments, and forgets it. Empty after restore().
  std::vector<std::byte> take_front();
  /// Returns the beginning of the front, up to the end of SEGS, with the checksums that are known, and fills in
  /// KeptFront::checked. Any thread.
  Result<std::vector<std::byte>> tables(std::vector<std::uint8_t>& checked) const;
  /// Returns the number of segments whose checksums are not known. Any thread.
  std::uint32_t n_unchecked() const;
  /// Whether the segment's checksum is known. Any thread.
  bool is_checked(std::uint32_t segment) const { return checks_[segment].load() != Check::unknown; }
  /// Returns the model's files whose bytes the segments need, ascending.
  std::vector<std::uint32_t> inputs() const;
  /// Returns the bytes that the plan takes, approximately.
  std::uint64_t memory() const;

  /// Rows of one tensor, at a place in a segment.
  struct Part {
    std::uint32_t tensor = 0, begin = 0, n = 0;
    std::uint64_t at = 0, size = 0;  // of their row-major bytes in the segment
    RowsFrom from = RowsFrom::anywhere;
    std::uint32_t first_run = 0, n_runs = 0;
  };
  struct Step {
    std::vector<Part> parts;
    std::vector<InputRun> runs;  // each part's, one after the other
    std::uint64_t staged = 0;    // bytes of the runs of parts that are not stored
    bool anywhere = false;       // a part may read anything: see make_whole()
    bool last = false;
  };
  /// Plans the segment's next step, which stages at most `most` bytes or those of one strip. An empty step is the one
  /// before the first. Keeps the step's memory.
  void next_step(std::uint32_t segment, std::uint64_t most, Step& step) const;
  /// Returns the most bytes that a step stages which is asked to stage none.
  std::uint64_t least_staged() const { return least_staged_; }
  /// Makes a whole segment and reads its rows, in place of steps one of which may read anything. One thread at a
  /// time.
  Status make_whole(std::uint32_t segment, std::span<std::byte> raw, FilePlan::Room& room) const {
    return plan_.read(segment, 0, raw, room);
  }
  /// Whether some rows may come from anywhere.
  bool reads_anywhere() const { return reads_anywhere_; }
  /// Completes a step. `raw` is the whole segment. Errors are those of the model's tensors.
  Status make(std::uint32_t segment, const Step& step, std::span<std::byte> raw, FilePlan::Room& room) const;
  /// Rows of a matrix in a segment that are copied from runs of the model's files, all strips or the first of them.
  struct Slice {
    std::uint32_t tensor = 0, begin = 0, n = 0;
    std::uint64_t at = 0;  // of the first row in the segment
    std::vector<InputRun> runs;
    bool last = false;
  };
  /// Plans the slice after `slice`, which reads at most about `most` bytes or those of one strip. An empty slice is the
  /// one before the first. Keeps the slice's memory. Returns false if the segment has no such rows, or if they are
  /// copied to their place at once.
  bool next_slice(std::uint32_t segment, std::uint64_t most, Slice& slice) const;
  /// Returns the most bytes of the runs of such a slice.
  std::uint64_t slice_bytes(std::uint64_t most) const;
  /// Makes a slice from the bytes of its runs, as make() does from a step. Threads may make others of the segment.
  Status make(std::uint32_t segment, const Slice& slice, std::span<const std::byte> stored,
              std::span<std::byte> raw) const;
  /// Compares the checksum of a whole segment with the known one, or learns it. Does so once for each segment. Returns
  /// bad_checksum. One thread at a time for each segment.
  Status seal(std::uint32_t segment, std::span<const std::byte> raw);

 private:
  enum class Check : std::uint8_t { unknown, kept, done };  // of a segment's checksum; kept: by an earlier process

  MadeFile(FilePlan plan, std::vector<LoadedTensor> tensors, std::vector<std::string> warnings);
  RowsFrom runs_of(std::uint32_t tensor, std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& runs) const;
  void add_part(const Part& part, Step& step) const;

  std::vector<LoadedTensor> tensors_;  // that the plan reads
  FilePlan plan_;
  std::vector<std::byte> front_;
  std::vector<std::string> warnings_;
  std::vector<std::atomic<Check>> checks_;
  std::vector<std::uint32_t> crcs_;
  std::uint64_t least_staged_ = 0;
  bool reads_anywhere_ = false;
};

}  // namespace qsf::convert
