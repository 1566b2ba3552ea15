// A session with everything around it: memory, a source, a completing thread and computing threads. Every native
// program and the C API use it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/kernel_speeds.h"
#include "native/host/memory_monitor.h"
#include "native/host/speed.h"
#include "native/made/open_model.h"
#include "native/sources/io_thread.h"
#include "native/sources/source.h"
#include "qsf/engine.h"
#include "system/cores.h"
#include "threads/thread_pool.h"
#include "threads/thread_tuner.h"

namespace qsf {

/// Returns QSF_ISA from the environment for OpenOptions::isa; empty without it.
std::string_view isa_from_environment();

struct HostOptions {
  std::uint64_t budget = 200u << 20;  // bytes; kHostReserve of them stay outside the arena
  std::uint32_t threads = 0;          // 0: usable_cores(), or for a token as many of them as are fastest at the moment
  bool pin = false;                   // keep each computing thread except the caller's on its own core
  bool profile = false;               // measure every step: see Profile
  bool expect = false;                // measure the machine first, for Stats::token_rate
  bool deepen = true;                 // deepen the ring if reads past the page cache take long
  KernelSpeeds* kernels = nullptr;    // use the fastest kernels for products, and measure those that are not settled
  std::string_view draft;             // the place of a model that guesses tokens, read while opening; empty: none
  std::string_view draft_type;        // such a model is the model itself in this format, if it has no other place
  MonitorOptions monitor;             // of the memory that is available; needs a policy of positions
  SourceOptions source;
  OpenOptions
      open;  // the host sets workers, cancel, mapped, watched, vouched, guess_source, host_bytes and draft_bytes
};

/// The time of a host, in seconds.
struct Profile {
  std::array<double, kWorkNames.size()> work{};  // steps, by their work
  double waiting = 0;                            // for bytes, with nothing to compute
  double reading = 0, unpacking = 0;             // of the completing thread, at the same time
};

/// Zeroed pages from the system, given back at the end. A page takes memory only once it is written.
class Pages {
 public:
  static Result<Pages> take(std::uint64_t size);
  Pages(Pages&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  Pages& operator=(Pages&&) = delete;
  ~Pages();
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit Pages(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

class Draft;

class Host {
 public:
  /// Opens the model, and a draft model first, and steps until the session is ready. Any thread, or a signal handler,
  /// may set `cancel` at any time; it must outlive the host.
  static Result<std::unique_ptr<Host>> open(const std::string& model, const HostOptions& options,
                                            const std::atomic<bool>& cancel);
  /// The same for a model that was found, without a draft.
  static Result<std::unique_ptr<Host>> open(const FoundModel& found, const HostOptions& options,
                                            const std::atomic<bool>& cancel);

  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  Session& session() { return *session_; }
  Source& source() { return source_; }
  std::uint32_t threads() const { return pool_.count(); }
  /// Returns the kernels that were chosen by measuring, for the file's formats and both batches.
  std::span<const KernelSpeed> kernels() const { return kernels_; }
  /// Whether any of them was measured.
  bool measured_kernels() const { return measured_kernels_; }
  /// Returns the seconds that opening took.
  double open_seconds() const { return open_seconds_; }
  /// Returns the model if it is no .qsf file; null if it is one.
  MadeModel* made() const { return found_.made.get(); }
  /// Returns the model that guesses tokens; null without one.
  Draft* draft() const { return draft_.get(); }
  /// Returns the monitor of memory; null without one.
  const MemoryMonitor* monitor() const { return monitor_ ? &*monitor_ : nullptr; }
  /// Returns sentences on the choices, on the model, and on types that change.
  const std::vector<std::string>& notes() const { return found_.notes; }

  /// Gives the session the hash of the whole model, which saved sequences name. Reads a made model whose checksums are
  /// not all known, which takes as long as reading it for tokens. Errors: those of MadeModel::hash().
  Status know_hash();

  /// Steps until there is something to report: logits, token, embedding, done or ready. Fails with the session's error,
  /// or with `cancelled` soon after the flag is set; the session can then be stopped and used again.
  Result<Step> next();
  /// Returns the times since the last call; all zero unless HostOptions::profile is set.
  Profile take_profile();

 private:
  Host(Pages pages, Source source, const HostOptions& options, const std::atomic<bool>& cancel);

  static Result<std::unique_ptr<Host>> try_open(const FoundModel& found, const HostOptions& options,
                                                const std::atomic<bool>& cancel, bool& planned);
  static Error find_budget(const FoundModel& found, const HostOptions& options, const std::atomic<bool>& cancel);
  Result<Step> step();
  Status measure(const HostOptions& options, OpenOptions& open);
  Status measure_rates(const HostOptions& options, std::span<const FormatShare> formats, OpenOptions& open);

  FoundModel found_;
  Pages pages_;
  Source source_;
  ThreadPool pool_;
  std::optional<ThreadTuner> tuner_;
  const std::atomic<bool>& cancel_;
  Session* session_ = nullptr;
  std::optional<IoThread> io_;
  std::unique_ptr<Draft> draft_;
  std::optional<MemoryMonitor> monitor_;
  std::vector<KernelSpeed> kernels_;
  bool measured_kernels_ = false;
  double open_seconds_ = 0;
  bool profiling_;
  Profile profile_;
};

}  // namespace qsf
