// Messages of qsf-run on standard error.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "qsf/base/result.h"
#include "threads/thread.h"

namespace qsf::run {

/// When standard error has colours: if it is a terminal and NO_COLOR is not set, always, or never.
enum class Color : std::uint8_t { automatic, always, never };
void use_color(Color color);

/// Returns the text with '?' for every control character, C1 included, and for invalid UTF-8, so that no text can steer
/// a terminal. Keeps line feeds and tabs if `lines` is set.
std::string printable(std::string_view text, bool lines = false);

/// Print one line, "qsf-run: CODE: sentence", without the secrets of its addresses.
void tell(const Error& error);
void tell(ErrorCode code, std::string_view sentence);
/// Prints a piece of text that is not an answer, in a fainter colour.
void think(std::string_view text);
/// Prints one line, "qsf-run: sentence".
void note(std::string_view sentence);
/// Returns the mark in front of typed input and a space. The colours end before the space, as libedit needs it.
std::string input_mark(std::string_view mark);
/// Prints the mark and a space.
void show_input_mark(std::string_view mark);

/// One line on standard error that each show() replaces. Writes nothing if standard error is not a terminal.
class StatusLine {
 public:
  ~StatusLine() { clear(); }
  void show(std::string_view text);
  void clear();

 private:
  bool shown_ = false;
};

/// Shows how many bytes have arrived, from 1.5 seconds on until it ends: a terminal has one line, which disappears,
/// other files a line every 10 seconds if they are `verbose`. Shows nothing if the system refuses its thread.
class Progress {
 public:
  /// The model's name and the counter must outlive it.
  Progress(const std::string& model, const std::atomic<std::uint64_t>& received, bool verbose);
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Ends the display. May be called again.
  void end();

 private:
  void run();

  const std::string& model_;
  const std::atomic<std::uint64_t>& received_;
  bool verbose_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  Thread thread_;
};

}  // namespace qsf::run
