#include "converter/cli/terminal.h"

#include <cerrno>
#include <cstring>
#include <span>

#include "system/program.h"

namespace qsf::convert {
namespace {

volatile std::sig_atomic_t last_signal = 0;

}  // namespace

std::string printable(std::string_view text) {
  std::string out(text.size() + 1, '\0');
  out.resize(format_into(std::span<char>(out), "{}", text));
  return out;
}

Status finish_stdout(bool& unread) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  const Error error = make_error(ErrorCode::io_error, "cannot write to the standard output: {}",
                                 errno != 0 ? std::strerror(errno) : "some of it was lost");
  unread = sys::nobody_reads(sys::kOutput);
  return error;
}

StopSignals::StopSignals() {
  constexpr bool kResume = true;
  last_signal = 0;
  sys::catch_stops([](int caught) { last_signal = caught; }, kResume);
}

StopSignals::~StopSignals() { sys::release_stops(); }

int StopSignals::caught() const { return last_signal; }

}  // namespace qsf::convert
