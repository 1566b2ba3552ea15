// The parts of a session, and the passes that it makes of its sequences' columns.
#pragma once

#include "run/model.h"
#include "run/opening.h"
#include "run/saved.h"

namespace qsf {

struct Session::Impl {
  static constexpr std::size_t kArenaBytes = 10240;
  enum class Phase : std::uint8_t { opening, ready, preloading, failed };

  Arena arena;
  Opening opening;
  Model model;
  Phase phase = Phase::opening;
  bool open = false;  // the plan is made
  Error error;
  bool in_pass = false;
  bool guesses = false;         // the pass is one of the first layers, whose logits are guesses
  std::uint32_t n_columns = 0;  // in the pass
  std::uint32_t current = 0;    // the sequence of the last step
  std::uint32_t turn = 0;       // the sequence that is asked first
  Work work = Work::embed;
  Saving saving;
  Restoring restoring;

  Step fail(const Error& e);
  Step run();
  bool begin_pass();
  bool begin_guessing(std::uint32_t most);
  void begin(std::uint32_t layers);
  Status end_pass();
  void drop_pass();
  /// Return sequence `id`. find() fails with bad_state before the model is open, or bad_argument; at() returns an empty
  /// sequence.
  Result<Sequence*> find(std::uint32_t id);
  const Sequence& at(std::uint32_t id) const;
  void stop(Sequence& sequence, End why);
  Status resume();
};

}  // namespace qsf
