#include "system/program.h"

// windows.h must precede the others.
#include <windows.h>
//
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "system/text_windows.h"
#include "system/unfinished.h"

namespace qsf::sys {
namespace {

std::atomic<void (*)(int)> told{nullptr};
std::atomic<bool> pending{false};  // a stop before its take_stop()

BOOL WINAPI on_control(DWORD event) {
  void (*const caught)(int) = told;
  if (caught == nullptr) return FALSE;
  const bool keys = event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
  const int signal = keys ? SIGINT : SIGTERM;
  if (pending.exchange(true)) {
    each_unfinished([](const char* path) { ::DeleteFileW(wide(path).c_str()); });
    ::TerminateProcess(::GetCurrentProcess(), static_cast<UINT>(exit_code_of(signal)));
  }
  caught(signal);
  if (!keys) ::Sleep(INFINITE);  // the process ends when this function returns, or earlier when the program exits
  return TRUE;
}

HANDLE handle_of(int file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file)); }

/// The typed text that is not read yet, in UTF-8.
std::string typed;

std::ptrdiff_t read_console(HANDLE console, std::span<char> into) {
  if (typed.empty()) {
    constexpr wchar_t kEnd = 26;  // Ctrl-Z
    std::array<wchar_t, 2048> line;
    DWORD n = 0, more = 0;
    if (::ReadConsoleW(console, line.data(), static_cast<DWORD>(line.size() - 1), &n, nullptr) == 0) {
      return fail_as_windows();
    }
    if (n == 0) {  // Ctrl-C, which the handler reports
      errno = EINTR;
      return -1;
    }
    if (line[0] == kEnd) return 0;
    // The read may have split a surrogate pair.
    if (IS_HIGH_SURROGATE(line[n - 1])) ::ReadConsoleW(console, &line[n], 1, &more, nullptr);
    typed = narrow({line.data(), n + more});
  }
  const std::size_t n = std::min(into.size(), typed.size());
  std::memcpy(into.data(), typed.data(), n);
  typed.erase(0, n);
  return static_cast<std::ptrdiff_t>(n);
}

/// The console's encoding: UTF-8 while the program runs.
struct ConsoleText {
  UINT in = ::GetConsoleCP(), out = ::GetConsoleOutputCP();
  DWORD mode = 0;
  bool colors = ::GetConsoleMode(handle_of(kError), &mode) != 0;

  ConsoleText() {
    ::SetConsoleCP(CP_UTF8);
    ::SetConsoleOutputCP(CP_UTF8);
    if (colors) ::SetConsoleMode(handle_of(kError), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
  ~ConsoleText() {
    ::SetConsoleCP(in);
    ::SetConsoleOutputCP(out);
    if (colors) ::SetConsoleMode(handle_of(kError), mode);
  }
};

}  // namespace

int run_program(int, char**, int (*body)(int argc, char** argv)) {
  int n = 0;
  wchar_t** const given = ::CommandLineToArgvW(::GetCommandLineW(), &n);
  std::vector<std::string> texts;
  for (int i = 0; given != nullptr && i < n; ++i) texts.push_back(narrow(given[i]));
  ::LocalFree(given);
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  for (const int file : {kInput, kOutput, kError}) ::_setmode(file, _O_BINARY);
  const ConsoleText console;
  return body(static_cast<int>(texts.size()), arguments.data());
}

void hold_standard_files() {
  for (const int file : {kInput, kOutput, kError}) {
    if (::_get_osfhandle(file) >= 0) continue;
    // The file is opened for the wrong direction, so that using it fails.
    (void)::_open("NUL", file == kOutput ? _O_RDONLY : _O_WRONLY);
  }
}

std::FILE* open_nowhere() { return std::fopen("NUL", "w"); }

bool is_terminal(int file) {
  DWORD mode = 0;
  return ::GetConsoleMode(handle_of(file), &mode) != 0;
}

bool wait_readable(int file, int milliseconds) {
  const HANDLE handle = handle_of(file);
  if (is_terminal(file)) {
    return !typed.empty() || ::WaitForSingleObject(handle, static_cast<DWORD>(milliseconds)) != WAIT_TIMEOUT;
  }
  if (::GetFileType(handle) != FILE_TYPE_PIPE) return true;
  DWORD n = 0;
  if (::PeekNamedPipe(handle, nullptr, 0, nullptr, &n, nullptr) == 0 || n != 0) return true;  // an end, or bytes
  constexpr int kStep = 10;
  ::Sleep(static_cast<DWORD>(std::min(milliseconds, kStep)));  // other kinds cannot be waited for
  return false;
}

bool nobody_reads(int) { return false; }

std::ptrdiff_t read_some(int file, std::span<char> into) {
  if (is_terminal(file)) return read_console(handle_of(file), into);
  constexpr std::size_t kMost = 1u << 20;
  return ::_read(file, into.data(), static_cast<unsigned>(std::min(into.size(), kMost)));
}

std::tm local_time(std::time_t time) {
  std::tm local{};
  ::localtime_s(&local, &time);
  return local;
}

void catch_stops(void (*caught)(int signal), bool) {
  told = caught;
  ::SetConsoleCtrlHandler(on_control, TRUE);
}

void take_stop() { pending = false; }

void release_stops() {
  told = nullptr;
  take_stop();
  ::SetConsoleCtrlHandler(on_control, FALSE);
}

}  // namespace qsf::sys
