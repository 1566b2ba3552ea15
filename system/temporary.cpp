#include "system/temporary.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include "system/file.h"

namespace qsf::sys {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = ".qsf-", kEnd = ".tmp";
constexpr std::size_t kDigits = 16;

bool is_temporary(std::string_view name) {
  return name.size() == kBegin.size() + kDigits + kEnd.size() && name.starts_with(kBegin) && name.ends_with(kEnd);
}

}  // namespace

std::string temporary_name() {
  std::uint64_t random = 0;
  if (!random_bytes(std::as_writable_bytes(std::span(&random, 1)))) return {};
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(random));
  return std::string(kBegin).append(digits).append(kEnd);
}

void remove_abandoned(const std::string& folder) {
  const auto latest = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code error;
  for (fs::directory_iterator at(path_of(folder), error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // another process may remove it at the same time
    if (!is_temporary(text_of(at->path().filename())) || !at->is_regular_file(gone)) continue;
    const fs::file_time_type written = at->last_write_time(gone);
    if (!gone && written < latest) fs::remove(at->path(), gone);
  }
}

}  // namespace qsf::sys
