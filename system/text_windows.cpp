#include "system/text_windows.h"

#include <windows.h>

#include <array>
#include <cerrno>
#include <utility>

namespace qsf::sys {
namespace {

constexpr std::array<std::pair<DWORD, int>, 15> kErrors{{{ERROR_FILE_NOT_FOUND, ENOENT},
                                                         {ERROR_PATH_NOT_FOUND, ENOENT},
                                                         {ERROR_INVALID_NAME, ENOENT},
                                                         {ERROR_BAD_NETPATH, ENOENT},
                                                         {ERROR_ACCESS_DENIED, EACCES},
                                                         {ERROR_SHARING_VIOLATION, EACCES},
                                                         {ERROR_LOCK_VIOLATION, EACCES},
                                                         {ERROR_FILE_EXISTS, EEXIST},
                                                         {ERROR_ALREADY_EXISTS, EEXIST},
                                                         {ERROR_DISK_FULL, ENOSPC},
                                                         {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
                                                         {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
                                                         {ERROR_BROKEN_PIPE, EPIPE},
                                                         {ERROR_NO_DATA, EPIPE},
                                                         {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG}}};

}  // namespace

std::wstring wide(std::string_view text) {
  const int n = ::MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), nullptr, 0);
  std::wstring out(static_cast<std::size_t>(n), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), out.data(), n);
  return out;
}

std::string narrow(std::wstring_view text) {
  const auto size = static_cast<int>(text.size());
  const int n = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), size, nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(n), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), size, out.data(), n, nullptr, nullptr);
  return out;
}

int fail_as_windows() {
  const DWORD last = ::GetLastError();
  errno = EIO;
  for (const auto& [error, number] : kErrors) {
    if (last == error) errno = number;
  }
  return -1;
}

}  // namespace qsf::sys
