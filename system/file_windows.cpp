#include "system/file.h"

// windows.h must precede the others.
#include <windows.h>
//
#include <bcrypt.h>
#include <fcntl.h>
#include <io.h>
#include <process.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "system/text_windows.h"

namespace qsf::sys {
namespace {

// Sharing allows an open file to be renamed and removed, as on other systems.
constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr std::size_t kMost = 1u << 30;  // bytes of one call
constexpr std::string_view kSeparators = "/\\:";

bool refused() {
  fail_as_windows();
  return false;
}

HANDLE handle_of(int file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file)); }

/// Returns a descriptor that owns the handle.
int descriptor_of(HANDLE handle, int flags) {
  if (handle == INVALID_HANDLE_VALUE) return fail_as_windows();
  const int file = ::_open_osfhandle(reinterpret_cast<std::intptr_t>(handle), flags | _O_BINARY | _O_NOINHERIT);
  if (file < 0) ::CloseHandle(handle);
  return file;
}

int open_with(const std::string& path, DWORD access, DWORD what, DWORD flags, int descriptor_flags) {
  return descriptor_of(::CreateFileW(wide(path).c_str(), access, kShare, nullptr, what, flags, nullptr),
                       descriptor_flags);
}

bool look(HANDLE handle, FileInfo& out) {
  out = {};
  const DWORD type = ::GetFileType(handle);
  if (type == FILE_TYPE_PIPE || type == FILE_TYPE_CHAR) {
    out.kind = type == FILE_TYPE_PIPE ? FileKind::pipe : FileKind::device;
    return true;
  }
  BY_HANDLE_FILE_INFORMATION info{};
  if (::GetFileInformationByHandle(handle, &info) == 0) return refused();
  const auto joined = [](DWORD high, DWORD low) { return std::uint64_t{high} << 32 | low; };
  out.kind = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? FileKind::folder : FileKind::regular;
  out.size = joined(info.nFileSizeHigh, info.nFileSizeLow);
  out.volume = info.dwVolumeSerialNumber;
  out.number = joined(info.nFileIndexHigh, info.nFileIndexLow);
  constexpr std::uint64_t kUnit = 100;  // nanoseconds
  out.modified = static_cast<std::int64_t>(
      joined(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime) * kUnit);
  return true;
}

/// Returns an event of the calling thread, so that several threads can read at once.
HANDLE own_event() {
  struct Event {
    HANDLE handle = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
    ~Event() { ::CloseHandle(handle); }
  };
  static thread_local const Event event;
  return event.handle;
}

/// Starts a read or write at an explicit offset and waits for its end.
template <class Start>
std::ptrdiff_t transfer_at(int file, std::uint64_t at, std::size_t size, const Start& start) {
  const HANDLE handle = handle_of(file);
  if (handle == INVALID_HANDLE_VALUE) return -1;
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(at);
  place.OffsetHigh = static_cast<DWORD>(at >> 32);
  place.hEvent = own_event();
  DWORD n = 0;
  const auto most = static_cast<DWORD>(std::min(size, kMost));
  if (start(handle, most, place) == 0 && ::GetLastError() != ERROR_IO_PENDING) {
    return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : fail_as_windows();
  }
  if (::GetOverlappedResult(handle, &place, &n, TRUE) == 0) {
    return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : fail_as_windows();
  }
  return static_cast<std::ptrdiff_t>(n);
}

}  // namespace

bool look(const std::string& path, FileInfo& out) {
  // No access is requested, because only properties are read. FILE_FLAG_BACKUP_SEMANTICS opens folders too.
  const HANDLE handle =
      ::CreateFileW(wide(path).c_str(), 0, kShare, nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return refused();
  const bool known = look(handle, out);
  ::CloseHandle(handle);
  return known;
}

bool look(int file, FileInfo& out) {
  const HANDLE handle = handle_of(file);
  return handle != INVALID_HANDLE_VALUE && look(handle, out);
}

std::optional<std::uint64_t> place_in(int file) {
  FileInfo info;
  const std::int64_t place = look(file, info) && info.kind == FileKind::regular ? ::_lseeki64(file, 0, SEEK_CUR) : -1;
  return place < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(place));
}

int open_file(const std::string& path) {
  return open_with(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_OVERLAPPED, _O_RDONLY);
}
int open_input(const std::string& path) {
  return open_with(path, GENERIC_READ, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, _O_RDONLY);
}
int open_output(const std::string& path) {
  return open_with(path, GENERIC_WRITE, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, _O_WRONLY);
}
int create_file(const std::string& path) {
  return open_with(path, GENERIC_WRITE | DELETE, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, _O_WRONLY);
}
bool close_file(int file) { return ::_close(file) == 0; }

std::ptrdiff_t read_at(int file, std::uint64_t at, std::span<std::byte> into) {
  return transfer_at(file, at, into.size(), [&](HANDLE handle, DWORD size, OVERLAPPED& place) {
    return ::ReadFile(handle, into.data(), size, nullptr, &place);
  });
}

std::ptrdiff_t write_at(int file, std::uint64_t at, std::span<const std::byte> bytes) {
  return transfer_at(file, at, bytes.size(), [&](HANDLE handle, DWORD size, OVERLAPPED& place) {
    return ::WriteFile(handle, bytes.data(), size, nullptr, &place);
  });
}

std::ptrdiff_t write_some(int file, std::span<const std::byte> bytes) {
  return ::_write(file, bytes.data(), static_cast<unsigned>(std::min(bytes.size(), kMost)));
}

bool flush_file(int file) { return ::_commit(file) == 0; }

bool replace_file(const std::string& from, const std::string& to) {
  const DWORD how = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  return ::MoveFileExW(wide(from).c_str(), wide(to).c_str(), how) != 0 || refused();
}
bool remove_file(const std::string& path) { return ::DeleteFileW(wide(path).c_str()) != 0 || refused(); }

bool is_writable(const std::string& path) {
  const DWORD attributes = ::GetFileAttributesW(wide(path).c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return refused();
  if ((attributes & FILE_ATTRIBUTE_READONLY) == 0) return true;
  errno = EACCES;
  return false;
}

void copy_mode(int, const FileInfo&) {}

bool is_single_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find_first_of(kSeparators) == text.npos;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of(kSeparators) + 1); }

std::string resolved(const std::string& path) {
  const HANDLE handle =
      ::CreateFileW(wide(path).c_str(), 0, kShare, nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return path;
  std::array<wchar_t, 32768> real;
  const DWORD n = ::GetFinalPathNameByHandleW(handle, real.data(), static_cast<DWORD>(real.size()), 0);
  ::CloseHandle(handle);
  if (n == 0 || n >= real.size()) return path;
  std::wstring_view found(real.data(), n);
  constexpr std::wstring_view kVerbatim = L"\\\\?\\", kShareOf = L"\\\\?\\UNC";
  if (found.starts_with(kVerbatim) && !found.starts_with(kShareOf)) found.remove_prefix(kVerbatim.size());
  return narrow(found);
}

std::filesystem::path path_of(std::string_view text) { return wide(text); }
std::string text_of(const std::filesystem::path& path) { return narrow(path.generic_wstring()); }

bool random_bytes(std::span<std::byte> out) {
  auto* const at = reinterpret_cast<unsigned char*>(out.data());
  return ::BCryptGenRandom(nullptr, at, static_cast<ULONG>(out.size()), BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0;
}

std::uint32_t process_number() { return ::GetCurrentProcessId(); }

std::string environment(const char* name) {
  const wchar_t* const value = ::_wgetenv(wide(name).c_str());
  return value == nullptr ? "" : narrow(value);
}

std::string cache_folder() { return environment("LOCALAPPDATA"); }

}  // namespace qsf::sys
