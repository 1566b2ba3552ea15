#include "native/sources/mapped_file.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <utility>

#include "native/sources/regular_file.h"

namespace qsf {
namespace {

constexpr std::size_t kNone = MappedFile::kMost;

/// The state that the handler reads, in any thread at any time.
struct Guard {
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<bool> lost{false};
  bool taken = false;  // guarded by the mutex
};
std::array<Guard, MappedFile::kMost> guards;
std::mutex guards_mutex;
struct sigaction before;
std::uintptr_t page_size = 0;
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::uintptr_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

/// Maps a page of zeros. On Linux it is a system call, because POSIX does not let a signal handler call mmap, and
/// because ThreadSanitizer takes a call of mmap for a write that races with other threads' reads of the page.
void* map_zeros(void* page) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
#ifdef __linux__
  return reinterpret_cast<void*>(::syscall(SYS_mmap, page, page_size, PROT_READ, kFlags, -1, 0L));
#else
  return ::mmap(page, page_size, PROT_READ, kFlags, -1, 0);
#endif
}

/// Maps a page of zeros over one of a guarded file. Returns false for other addresses, or if the system refuses.
bool fill_page(std::uintptr_t at) {
  for (Guard& guard : guards) {
    if (at < guard.begin.load(std::memory_order_acquire) || at >= guard.end.load(std::memory_order_acquire)) continue;
    void* const page = reinterpret_cast<void*>(at / page_size * page_size);
    if (map_zeros(page) == MAP_FAILED) return false;
    guard.lost.store(true, std::memory_order_release);
    return true;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool filled = info->si_code > 0 && fill_page(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = error;
  if (filled) return;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    ::sigaction(SIGBUS, &before, nullptr);
    if (info->si_code <= 0) ::raise(signal);  // sent by a program; a fault comes again by itself
  }
}

/// Returns kNone if all guards are taken.
std::size_t take_guard(std::span<const std::byte> bytes) {
  const std::lock_guard lock(guards_mutex);
  if (page_size == 0) {
    page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &before);
  }
  for (std::size_t i = 0; i < guards.size(); ++i) {
    Guard& guard = guards[i];
    if (guard.taken) continue;
    guard.taken = true;
    guard.lost.store(false, std::memory_order_relaxed);
    guard.end.store(address_of(bytes.data()) + bytes.size(), std::memory_order_release);
    guard.begin.store(address_of(bytes.data()), std::memory_order_release);
    return i;
  }
  return kNone;
}

void give_guard(std::size_t i) {
  const std::lock_guard lock(guards_mutex);
  guards[i].end.store(0, std::memory_order_release);
  guards[i].taken = false;
}

/// Returns the whole pages of these bytes.
std::span<std::byte> whole_pages(std::span<const std::byte> bytes) {
  const std::uintptr_t size = page_size, begin = (address_of(bytes.data()) + size - 1) / size * size;
  const std::uintptr_t end = (address_of(bytes.data()) + bytes.size()) / size * size;
  if (end <= begin) return {};
  return {reinterpret_cast<std::byte*>(begin), static_cast<std::size_t>(end - begin)};
}

}  // namespace

Result<MappedFile> MappedFile::map(int fd, std::uint64_t size) {
  void* const at = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return system_error("cannot map", "the model file");
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(at), static_cast<std::size_t>(size));
  const std::size_t guard = take_guard(bytes);
  if (guard == kNone) {
    ::munmap(at, bytes.size());
    return make_error(ErrorCode::out_of_memory, "more than {} files cannot be mapped at a time", kMost);
  }
  return MappedFile(bytes, guard);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), guard_(std::exchange(other.guard_, kNone)) {}

MappedFile::~MappedFile() {
  if (guard_ == kNone) return;
  give_guard(guard_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

bool MappedFile::lost() const { return guards[guard_].lost.load(std::memory_order_acquire); }

Status MappedFile::renew(int fd) {
  guards[guard_].lost.store(false, std::memory_order_release);
  void* const at = const_cast<std::byte*>(bytes_.data());
  if (::mmap(at, bytes_.size(), PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) return {};
  guards[guard_].lost.store(true, std::memory_order_release);  // the zeros are still there
  return system_error("cannot map", "the model file");
}

void populate(std::span<const std::byte> mapped) {
  const std::uintptr_t begin = address_of(mapped.data()) / page_size * page_size;
  void* const at = reinterpret_cast<void*>(begin);
  const std::size_t size = mapped.size() + (address_of(mapped.data()) - begin);
  ::madvise(at, size, MADV_WILLNEED);
#ifdef __linux__
  constexpr int kPopulateRead = 22;  // not in older headers; refused by older systems
  ::madvise(at, size, kPopulateRead);
#endif
}

void forget(std::span<const std::byte> mapped) {
  const std::span<std::byte> pages = whole_pages(mapped);
  if (!pages.empty()) ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
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

}  // namespace qsf
