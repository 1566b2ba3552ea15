// Files through a small window of mapped pages, which never count towards the process for long.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "native/mapped_copy.h"
#include "native/source_file.h"

namespace qsf {
namespace {

Status read_mmap(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  const FileSource& file = *static_cast<FileSource*>(state);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return file.read_steps(
      request, cancelled, 512u << 10, [&](std::uint64_t at, std::span<std::byte> into) -> Result<std::size_t> {
        // The rest of the last page of a file that became shorter is readable and zero.
        struct stat status{};
        if (::fstat(file.fd, &status) != 0) return system_error("cannot read", "the model file");
        if (static_cast<std::uint64_t>(status.st_size) < at + into.size()) return ended(at + into.size());
        const std::uint64_t begin = at / page * page;
        const auto length = static_cast<std::size_t>(at - begin) + into.size();
        void* window = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.fd, static_cast<off_t>(begin));
        if (window == MAP_FAILED) return system_error("cannot map", "the model file");
        populate({static_cast<std::byte*>(window), length});
        const ssize_t n = copy_mapped(static_cast<std::byte*>(window) + (at - begin), into);
        ::munmap(window, length);
        if (n < 0) return read_some(file.fd, at, into);
        if (n == 0) return ended(at + into.size());
        return static_cast<std::size_t>(n);
      });
}

}  // namespace

void populate(std::span<std::byte> mapped) {
  ::madvise(mapped.data(), mapped.size(), MADV_WILLNEED);
#ifdef __linux__
  constexpr int kPopulateRead = 22;  // not in older headers; refused by older systems
  ::madvise(mapped.data(), mapped.size(), kPopulateRead);
#endif
}

ssize_t copy_mapped(const std::byte* from, std::span<std::byte> to) {
#ifdef __linux__
  const iovec local{to.data(), to.size()}, remote{const_cast<std::byte*>(from), to.size()};
  const ssize_t n = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  return n < 0 && errno == EFAULT ? 0 : n;
#else
  (void)from, (void)to;
  return -1;
#endif
}

extern const SourceKind kMmapSource;
const SourceKind kMmapSource = FileSource::kind<read_mmap>("mmap");

}  // namespace qsf
