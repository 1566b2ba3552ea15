#include "native/process.h"
// windows.h first: the other needs it.
#include <windows.h>
//
#include <psapi.h>

#include <map>

#include "native/temp.h"
#include "system/text_windows.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

/// As CommandLineToArgvW reads it: quotes and the backslashes in front of them get a backslash.
std::string quoted(const std::string& argument) {
  std::string out = "\"";
  std::size_t backslashes = 0;
  for (const char c : argument) {
    if (c == '"') out.append(backslashes + 1, '\\');
    backslashes = c == '\\' ? backslashes + 1 : 0;
    out += c;
  }
  return out.append(backslashes, '\\') + '"';
}

std::wstring environment_with(const std::vector<std::string>& more) {
  std::map<std::wstring, std::wstring> all;
  const auto add = [&](const std::wstring& variable) {
    const std::size_t at = variable.find(L'=', 1);
    if (at != variable.npos) all[variable.substr(0, at)] = variable.substr(at + 1);
  };
  wchar_t* const own = ::GetEnvironmentStringsW();
  for (const wchar_t* at = own; *at != L'\0'; at += std::wstring_view(at).size() + 1) add(at);
  ::FreeEnvironmentStringsW(own);
  for (const std::string& variable : more) add(sys::wide(variable));
  std::wstring block;
  for (const auto& [name, value] : all) block += name + L'=' + value + L'\0';
  return block + L'\0';
}

HANDLE inherited(const std::string& path, DWORD access, DWORD what) {
  SECURITY_ATTRIBUTES inherit{sizeof inherit, nullptr, TRUE};
  const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  return ::CreateFileW(sys::wide(path).c_str(), access, share, &inherit, what, FILE_ATTRIBUTE_NORMAL, nullptr);
}

/**
 * Starts `line`, and returns the system's error or 0. Wine may lose a process that it has just started, which it
 * reports as ERROR_INTERNAL_ERROR: the start is tried three times.
 */
DWORD started(const std::wstring& line, std::wstring& environment, STARTUPINFOW& start, PROCESS_INFORMATION& child) {
  DWORD error = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::wstring words = line;  // CreateProcessW may write into it
    if (::CreateProcessW(nullptr, words.data(), nullptr, nullptr, TRUE, CREATE_UNICODE_ENVIRONMENT, environment.data(),
                         nullptr, &start, &child) != 0) {
      return 0;
    }
    error = ::GetLastError();
    if (error != ERROR_INTERNAL_ERROR) break;
  }
  return error;
}

}  // namespace

std::string program(const std::string& name) { return program_dir() + "/" + name + ".exe"; }

Ran run(const std::vector<std::string>& command, const Around& around) {
  const TempDir dir;
  const std::string in = dir / "in", out = dir / "out", err = dir / "err";
  write_bytes(in, {reinterpret_cast<const std::byte*>(around.input.data()),
                   reinterpret_cast<const std::byte*>(around.input.data()) + around.input.size()});
  std::string line;
  for (const std::string& argument : command) line += (line.empty() ? "" : " ") + quoted(argument);
  std::vector<std::string> variables = around.environment;
  variables.push_back("LOCALAPPDATA=" + (dir / "cache"));
  std::wstring block = environment_with(variables);

  STARTUPINFOW start{};
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = inherited(in, GENERIC_READ, OPEN_EXISTING);
  start.hStdOutput = inherited(around.out.empty() ? out : around.out, GENERIC_WRITE, OPEN_ALWAYS);
  start.hStdError = inherited(err, GENERIC_WRITE, OPEN_ALWAYS);
  PROCESS_INFORMATION child{};
  Ran ran;
  const DWORD refused = started(sys::wide(line), block, start, child);
  if (refused == 0) {
    if (around.meanwhile) around.meanwhile(static_cast<pid_t>(child.dwProcessId));
    ::WaitForSingleObject(child.hProcess, INFINITE);
    DWORD code = 0;
    PROCESS_MEMORY_COUNTERS counters{};
    if (::GetExitCodeProcess(child.hProcess, &code) != 0) ran.code = static_cast<int>(code);
    if (::GetProcessMemoryInfo(child.hProcess, &counters, sizeof counters) != 0) {
      ran.peak_resident_bytes = counters.PeakWorkingSetSize;
    }
    ::CloseHandle(child.hThread);
    ::CloseHandle(child.hProcess);
  }
  for (const HANDLE handle : {start.hStdInput, start.hStdOutput, start.hStdError}) ::CloseHandle(handle);
  ran.out = read_text(out);
  ran.err = read_text(err);
  if (refused != 0) ran.err += "CreateProcessW: error " + std::to_string(refused);
  return ran;
}

Ran measured(std::vector<std::string> command, const Around& around) { return run(command, around); }

}  // namespace qsf::test
