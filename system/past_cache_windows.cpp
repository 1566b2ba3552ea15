#include "system/past_cache.h"

// windows.h must precede the others.
#include <windows.h>
//
#include <fcntl.h>
#include <io.h>

#include <cstdint>

#include "qsf/base/align.h"

namespace qsf {

DirectFile reopen_direct(int fd) {
  const auto handle = reinterpret_cast<HANDLE>(::_get_osfhandle(fd));
  const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  const HANDLE direct = ::ReOpenFile(handle, GENERIC_READ, share, FILE_FLAG_NO_BUFFERING | FILE_FLAG_OVERLAPPED);
  if (direct == INVALID_HANDLE_VALUE) return {};
  const int file = ::_open_osfhandle(reinterpret_cast<std::intptr_t>(direct), _O_RDONLY | _O_BINARY | _O_NOINHERIT);
  if (file < 0) ::CloseHandle(direct);
  return {file, kBlock};
}

bool is_cached(int, std::uint64_t, std::uint64_t) { return false; }
void fetch_ahead(int, std::uint64_t, std::uint64_t) {}
void give_back(int, std::uint64_t, std::uint64_t) {}

}  // namespace qsf
