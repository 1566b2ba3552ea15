#include "native/sources/curl.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "system/memory.h"

namespace qsf {
namespace {

struct Loaded {
  Curl curl{};
  Error error{};
};

template <class Function>
bool find(void* library, const char* name, Function& to) {
  void* symbol = ::dlsym(library, name);
  static_assert(sizeof symbol == sizeof to);
  std::memcpy(&to, &symbol, sizeof to);
  return symbol != nullptr;
}

Loaded load() {
  Loaded loaded;
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"}) {
    library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    loaded.error = make_error(ErrorCode::unsupported_host, "reading from a URL needs libcurl.so.4, which is not here");
    return loaded;
  }
  drop_code_pages();  // relocating some thirty libraries reads 6 MB of them
  Curl& c = loaded.curl;
  decltype(&::curl_global_init) global_init = nullptr;
  const bool complete =
      find(library, "curl_global_init", global_init) && find(library, "curl_easy_init", c.easy_init) &&
      find(library, "curl_easy_setopt", c.easy_setopt) && find(library, "curl_easy_getinfo", c.easy_getinfo) &&
      find(library, "curl_easy_perform", c.easy_perform) && find(library, "curl_easy_cleanup", c.easy_cleanup) &&
      find(library, "curl_easy_strerror", c.easy_strerror) && find(library, "curl_slist_append", c.slist_append) &&
      find(library, "curl_slist_free_all", c.slist_free_all) && find(library, "curl_multi_init", c.multi_init) &&
      find(library, "curl_multi_add_handle", c.multi_add_handle) &&
      find(library, "curl_multi_remove_handle", c.multi_remove_handle) &&
      find(library, "curl_multi_perform", c.multi_perform) && find(library, "curl_multi_poll", c.multi_poll) &&
      find(library, "curl_multi_wakeup", c.multi_wakeup) && find(library, "curl_multi_info_read", c.multi_info_read) &&
      find(library, "curl_multi_cleanup", c.multi_cleanup);
  if (!complete) {
    loaded.error = make_error(ErrorCode::unsupported_host, "reading from a URL needs libcurl 7.68 or newer");
  } else if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    loaded.error = make_error(ErrorCode::unsupported_host, "libcurl could not be initialized");
  }
  drop_code_pages();
  return loaded;
}

}  // namespace

Result<const Curl*> load_curl() {
  static const Loaded loaded = load();
  if (loaded.error.code != ErrorCode::none) return loaded.error;
  return &loaded.curl;
}

bool worth_retrying(CURLcode code) {
  constexpr CURLcode kFinal[] = {
      CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_TOO_MANY_REDIRECTS, CURLE_PEER_FAILED_VERIFICATION,
      CURLE_SSL_CACERT_BADFILE,   CURLE_FAILED_INIT,   CURLE_OUT_OF_MEMORY,      CURLE_NOT_BUILT_IN};
  return std::find(std::begin(kFinal), std::end(kFinal), code) == std::end(kFinal);
}

}  // namespace qsf
