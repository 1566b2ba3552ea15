// What qsf-run says beside its output, on standard error.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "qsf/base/result.h"

namespace qsf::run {

/// When standard error has colours: when it is a terminal and NO_COLOR is not set, always, never.
enum class Color : std::uint8_t { automatic, always, never };
void use_color(Color color);

/// The text with '?' for every control character, C1's too, so that nothing read can steer a terminal; line ends and
/// tabs stay where `lines` says so.
std::string printable(std::string_view text, bool lines = false);

/// One line, "qsf-run: CODE: sentence".
void tell(const Error& error);
/// Text that is no answer, as it comes, in a fainter colour.
void think(std::string_view text);
/// One line, "qsf-run: sentence".
void note(std::string_view sentence);
/// What is typed comes behind it.
void show_input_mark();

/// Tells how many bytes have arrived, from a second and a half on until it ends: on a terminal in one line that goes
/// away, else a line now and then.
class Progress {
 public:
  /// Both must outlive it.
  Progress(const std::string& model, const std::atomic<std::uint64_t>& received);
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Nothing is told any more. May be called again.
  void end();

 private:
  void run();

  const std::string& model_;
  const std::atomic<std::uint64_t>& received_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace qsf::run
