#include <windows.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "system/cores.h"
#include "system/text_windows.h"

namespace qsf {
namespace {

/// Returns one processor of each core that this process may run on.
std::vector<GROUP_AFFINITY> cores() {
  DWORD size = 0;
  ::GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &size);
  std::vector<std::byte> all(size);
  auto* const first = reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(all.data());
  if (size == 0 || ::GetLogicalProcessorInformationEx(RelationProcessorCore, first, &size) == 0) return {};
  DWORD_PTR allowed = 0, system = 0;
  // A process in several groups has masks of 0 and may run everywhere.
  const bool limited = ::GetProcessAffinityMask(::GetCurrentProcess(), &allowed, &system) != 0 && allowed != 0;
  std::vector<GROUP_AFFINITY> found;
  for (std::size_t at = 0; at < size;) {
    const auto* core = reinterpret_cast<const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(all.data() + at);
    GROUP_AFFINITY one = core->Processor.GroupMask[0];
    if (limited) one.Mask &= allowed;
    if (one.Mask != 0) {
      one.Mask = KAFFINITY{1} << std::countr_zero(one.Mask);
      found.push_back(one);
    }
    at += core->Size;
  }
  return found;
}

}  // namespace

std::uint32_t usable_cores() { return std::max(static_cast<std::uint32_t>(cores().size()), 1u); }

void pin_to_cores(std::span<const ThreadHandle> threads) {
  const std::vector<GROUP_AFFINITY> to = cores();
  if (to.empty()) return;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const HANDLE thread = ::pthread_gethandle(threads[i]);
    ::SetThreadGroupAffinity(thread, &to[(i + 1) % to.size()], nullptr);
  }
}

std::string processor_name() {
  std::array<wchar_t, 256> name{};
  DWORD size = sizeof name;
  const bool told = ::RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                                   L"ProcessorNameString", RRF_RT_REG_SZ, nullptr, name.data(), &size) == ERROR_SUCCESS;
  return told && name[0] != L'\0' ? sys::narrow(name.data()) : "unknown";
}

void raise_reading_thread() { ::SetThreadPriority(::GetCurrentThread(), THREAD_PRIORITY_ABOVE_NORMAL); }

}  // namespace qsf
