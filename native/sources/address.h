// Addresses of models on servers.
#pragma once

#include <string>
#include <string_view>

namespace qsf {

/// Whether this is an http(s) URL, in letters of either case, and not a path.
bool is_url(std::string_view where);
/// Whether this is an address in the Hugging Face Hub: "hf:owner/name".
bool is_hub(std::string_view where);
/// Whether this is an address of a model on a server: either of both.
inline bool is_address(std::string_view where) { return is_url(where) || is_hub(where); }
/// Whether two URLs have the same scheme, host and port.
bool same_origin(std::string_view a, std::string_view b);
/// Whether this is a URL with an encrypted connection.
bool is_https(std::string_view where);

/// Returns the text with "***" for the secrets in its addresses: user and password, the values of a query (which may be
/// a signature), the fragment. Addresses of every scheme have them. Everything that shows or stores an address must use
/// it. A text that begins with a URL is one.
std::string without_secrets(std::string_view text);
/// The same of a sentence, in which an address ends before white space, quotes and angle brackets.
std::string sentence_without_secrets(std::string_view sentence);

}  // namespace qsf
