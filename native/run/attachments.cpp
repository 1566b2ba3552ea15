#include "native/run/attachments.h"

#include <algorithm>
#include <utility>

#include "native/cli/input.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf::run {
namespace {

#ifdef _WIN32
constexpr std::string_view kSeparators = "/\\";
#else
constexpr std::string_view kSeparators = "/";
#endif
constexpr std::size_t kLeastFence = 3;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// Whether the character is in no text: a control character that moves to no place on a page.
bool is_binary(char c) {
  return is_control(c) && std::string_view("\t\n\v\f\r\b\x1b").find(c) == std::string_view::npos;
}

Status check_text(std::string_view name, std::string_view text) {
  const auto control = static_cast<std::size_t>(std::ranges::find_if(text, is_binary) - text.begin());
  const std::size_t at = std::min(control, utf8::valid_prefix(text));
  if (at == text.size()) return {};
  const char* what = at == control ? "has a control character" : "is not UTF-8";
  return make_error(ErrorCode::bad_text, "{:.300} {}: byte {} has the value {}", name, what, at,
                    static_cast<unsigned char>(text[at]));
}

/// Returns the accents around the text.
std::string fence_of(std::string_view text) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max(kLeastFence, longest + 1), '`');
}

}  // namespace

Result<std::string> Attachments::add(const std::string& path) {
  std::string name = path.substr(path.find_last_of(kSeparators) + 1);
  if (name.empty() || !utf8::is_valid(name) || std::ranges::any_of(name, is_control)) {
    return make_error(ErrorCode::bad_argument, "'{:.300}' does not end with the name of a file in UTF-8", path);
  }
  QSF_LET(text, read_prompt(path, limit_ - std::min(limit_, text_.size())));
  QSF_TRY(check_text(path, text));
  const std::string fence = fence_of(text);
  text_ += name + ":\n" + fence + "\n" + text + "\n" + fence + "\n\n";
  return name;
}

std::string Attachments::before(std::string_view message) {
  std::string out = std::exchange(text_, {});
  return out += message;
}

}  // namespace qsf::run
