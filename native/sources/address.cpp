#include "native/sources/address.h"

#include <algorithm>
#include <array>

#include "native/sources/ascii.h"

namespace qsf {
namespace {

constexpr std::string_view kHttp = "http://", kHttps = "https://", kMark = "://", kSecret = "***";
constexpr std::array<std::string_view, 3> kSchemes{"https:", "http:", "hf:"};

bool begins(std::string_view text, std::string_view with) {
  return text.size() >= with.size() &&
         std::ranges::equal(text.substr(0, with.size()), with, [](char a, char b) { return lower(a) == b; });
}

bool is_of_scheme(char c) {
  const char letter = lower(c);
  return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/// The places of an address in a text: of its first character, and of its host.
struct Place {
  std::size_t begin = std::string_view::npos, host = std::string_view::npos;
};

/// Finds the first address: a scheme with "://", or one of kSchemes, whose slashes may be missing.
Place find_address(std::string_view text) {
  Place first;
  if (const std::size_t mark = text.find(kMark); mark != text.npos) {
    first = {mark, mark + kMark.size()};
    while (first.begin > 0 && is_of_scheme(text[first.begin - 1])) --first.begin;
  }
  for (const std::string_view scheme : kSchemes) {
    for (std::size_t end = 0;;) {
      const std::string_view before = text.substr(0, first.begin).substr(end);
      const auto found = std::ranges::search(before, scheme, {}, lower);
      const auto begin = static_cast<std::size_t>(found.begin() - text.begin());
      end = begin + scheme.size();
      if (found.empty() || end == first.begin) break;  // "hf:https://" is of the second scheme
      if (begin > 0 && is_of_scheme(text[begin - 1])) continue;
      first = {begin, std::min(text.find_first_not_of("/\\", end), text.size())};
      break;
    }
  }
  return first;
}

/// Returns the visible parts of an address.
std::string shown(std::string_view address, std::size_t host) {
  const std::size_t path = std::min(address.find_first_of("/?#", host), address.size());
  const std::size_t user = address.substr(0, path).rfind('@');
  const std::string_view authority = address.substr(host, path - host);
  const std::size_t port = authority.starts_with('[') ? authority.npos : authority.find(':');
  // An address that was cut may end in a password.
  const bool cut = port != authority.npos && authority.find_first_not_of("0123456789", port + 1) != authority.npos;
  std::string out(address.substr(0, host));
  if ((user != address.npos && user >= host) || cut) {
    out += kSecret;
    address.remove_prefix(user != address.npos && user >= host ? user : path);
  } else {
    address.remove_prefix(host);
  }
  const std::size_t query = std::min(address.find_first_of("?#"), address.size());
  out += address.substr(0, query);
  address.remove_prefix(query);
  const std::size_t fragment = std::min(address.find('#'), address.size());
  for (std::string_view values = address.substr(0, fragment); !values.empty();) {
    const std::size_t end = std::min(values.find_first_of("&;", 1), values.size());
    const std::string_view value = values.substr(0, end);
    const std::size_t name = value.find('=');
    // A value without a name may be the secret itself.
    out += name == value.npos ? value.substr(0, 1) : value.substr(0, name + 1);
    if (value.size() > 1) out += kSecret;
    values.remove_prefix(end);
  }
  if (fragment != address.size()) out += "#" + std::string(kSecret);
  return out;
}

}  // namespace

bool is_url(std::string_view where) { return begins(where, kHttp) || begins(where, kHttps); }
bool is_hub(std::string_view where) { return begins(where, "hf:"); }

bool same_origin(std::string_view a, std::string_view b) {
  const auto origin = [](std::string_view url) {
    const std::size_t host = url.find(kMark) + kMark.size(), end = std::min(url.find_first_of("/?#", host), url.size());
    const std::size_t user = url.substr(0, end).rfind('@');
    std::string out(url.substr(0, host));
    out += url.substr(user == url.npos || user < host ? host : user + 1);
    out.resize(out.size() - (url.size() - end));
    std::ranges::transform(out, out.begin(), lower);
    return out;
  };
  return is_url(a) && is_url(b) && origin(a) == origin(b);
}

bool is_https(std::string_view where) { return begins(where, kHttps); }

std::string without_secrets(std::string_view text) {
  return is_address(text) ? shown(text, find_address(text).host) : sentence_without_secrets(text);
}

std::string sentence_without_secrets(std::string_view sentence) {
  std::string out;
  for (Place at; (at = find_address(sentence)).begin != sentence.npos;) {
    out += sentence.substr(0, at.begin);
    sentence.remove_prefix(at.begin);
    const std::size_t host = at.host - at.begin;
    std::size_t length = std::min(sentence.find_first_of(" \t\r\n\"'<>"), sentence.size());
    // Marks at its end belong to the sentence.
    length = std::max(sentence.substr(0, length).find_last_not_of(".,:;!)") + 1, host);
    out += shown(sentence.substr(0, length), host);
    sentence.remove_prefix(length);
  }
  return out += sentence;
}

}  // namespace qsf
