// The state of a source that gives the bytes of a made file.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "native/made/made_job.h"
#include "native/made/made_model.h"
#include "native/sources/ring.h"
#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// The memory of a thread that makes rows.
struct Desk {
  FilePlan::Room room;
  std::vector<std::byte> rows;  // of a slice
  convert::MadeFile::Slice slice;
};

/// The state of the kind. The inner sources are submitted to under the mutex, and reaped by the reaping thread.
class Made {
 public:
  Made(std::shared_ptr<MadeModel> model, std::vector<Source> inners, bool helped);

  void submit(std::span<const ReadRequest> requests);
  std::size_t reap(std::span<Completion> out, std::chrono::milliseconds timeout);
  void cancel();
  Helped read_cached(Completion& out);
  std::size_t at_hand();
  Status intact();
  bool finish(Completion& done);
  std::uint64_t memory() const;

 private:
  using Slots = Ring<std::uint8_t, kSourceDepth>;

  static constexpr std::uint32_t kStages = 2;  // steps that stage bytes at a time: one arrives, the other is converted

  std::uint32_t segment_at(const ReadRequest& request) const;
  std::size_t under_way() const;
  bool has_news() const;
  void reserve();
  void begin_waiting();
  bool begin(std::uint8_t slot);
  bool begin_step(std::uint8_t slot);
  void send();
  bool arrived(const Completion& run);
  void leave_out(std::uint8_t slot);
  void give_up();
  Status make_step(std::uint8_t slot);
  Status make_whole(MadeJob& job);
  Status make_range(std::uint64_t offset, std::span<std::byte> out);
  void free(std::uint8_t slot);
  // made_near.cpp
  bool is_near(MadeJob& job);
  ReadRequest request_of(const InputRun& run, std::byte* into) const;
  Helped make_near(Completion& out);
  Status make_slice(MadeJob& job, Desk& desk);

  Desk take_desk();
  void give_desk(Desk desk);

  std::shared_ptr<MadeModel> model_;
  convert::MadeFile& file_;
  const FilePlan& plan_;
  std::vector<Source> inners_;
  const std::uint64_t stage_;  // bytes
  const bool helped_;
  const std::uint64_t slice_;  // bytes that a thread copies and makes at a time
  std::mutex mutex_;           // guards all members below
  std::condition_variable news_;
  std::array<MadeJob, kSourceDepth> jobs_;
  Slots free_, waiting_, sending_;  // waiting_: for memory to stage bytes; sending_: with runs to submit
  Slots arrived_, whole_;           // arrived_: to be finished; whole_: to be made by the reaping thread
  Slots near_;                      // whose slices helpers take
  std::array<std::vector<std::byte>, kStages> stages_;
  Ring<std::uint8_t, kStages> free_stages_;
  std::vector<Desk> desks_;
  bool cancelled_ = false;
};

}  // namespace qsf
