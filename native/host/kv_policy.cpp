#include "native/host/kv_policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace qsf {
namespace {

/// The policies of one number. Their places are the numbers of OpenOptions::kv_chosen.
constexpr std::array<std::string_view, 3> kOfWindow{"window:", "h2o:", "snapkv:"};
constexpr std::string_view kSinks = "sinks:";

/// Reads a number of positions, at least 1, up to the end of the text.
std::optional<std::uint32_t> read_positions(std::string_view text) {
  constexpr std::uint32_t kMost = 1u << 24;
  std::uint32_t n = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, n);
  if (error != std::errc() || at != end || n == 0 || n > kMost) return std::nullopt;
  return n;
}

}  // namespace

Status set_kv_type(std::string_view name, OpenOptions& options) {
  const auto* const type = std::ranges::find(kKvNames, name);
  if (type == kKvNames.end()) return make_error(ErrorCode::bad_argument, "there is no KV type '{}'", name);
  options.kv = static_cast<KvType>(type - kKvNames.begin());
  return {};
}

Status set_kv_policy(std::string_view policy, OpenOptions& options) {
  options.kv_window = options.kv_sinks = options.kv_chosen = 0;
  if (policy == "all") return {};
  for (std::size_t i = 0; i < kOfWindow.size(); ++i) {
    if (!policy.starts_with(kOfWindow[i])) continue;
    options.kv_window = read_positions(policy.substr(kOfWindow[i].size())).value_or(0);
    options.kv_chosen = static_cast<std::uint32_t>(i);
  }
  if (policy.starts_with(kSinks)) {
    const std::string_view numbers = policy.substr(kSinks.size());
    const std::size_t plus = numbers.find('+');
    const auto sinks = read_positions(numbers.substr(0, plus));
    const auto window = plus == numbers.npos ? std::nullopt : read_positions(numbers.substr(plus + 1));
    if (sinks && window) {
      options.kv_sinks = *sinks;
      options.kv_window = *window;
    }
  }
  if (options.kv_window != 0) return {};
  return make_error(ErrorCode::bad_argument,
                    "a policy of keys and values is all, window:N, sinks:A+N, h2o:N or snapkv:N with numbers of "
                    "positions from 1 to 16777216, not '{:.60}'",
                    policy);
}

}  // namespace qsf
