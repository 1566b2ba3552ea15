#include "native/made/hub.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "converter/files/json.h"
#include "converter/files/local_files.h"
#include "native/made/remote_files.h"
#include "native/sources/http_text.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf {
namespace {

namespace fs = std::filesystem;
using convert::Json;

constexpr std::string_view kScheme = "hf:", kEndpoint = "https://huggingface.co", kMain = "main";
constexpr std::uint64_t kMostBytes = 32u << 20;  // of the list of a repository's files
constexpr std::uint64_t kMostToken = 4096;       // bytes of a file with a token
constexpr double kMiB = 1 << 20;

struct Ending {
  std::string_view text;
  bool converts;
};
constexpr auto kEndings = std::to_array<Ending>({
#define QSF_HUB_ENDING(ending, converts) {ending, converts},
#include "native/made/hub_files.def"
});
constexpr auto kOthers = std::to_array<std::string_view>({
#define QSF_HUB_OTHER(word) word,
#include "native/made/hub_files.def"
});
#define QSF_HUB_PART(ending) constexpr std::string_view kPart = ending;
#define QSF_HUB_SHARE(numerator, denominator) constexpr std::uint64_t kShare = numerator, kShareOf = denominator;
#include "native/made/hub_files.def"

struct Address {
  std::string owner, name, file, revision = std::string(kMain);
  std::string repository() const { return owner + "/" + name; }
};

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, allowed);
}

/// Whether a path stays in its folder.
bool is_relative(std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

Result<Address> address_of(std::string_view where) {
  const Error error =
      make_error(ErrorCode::bad_argument,
                 "'{:.200}' is no address of the Hub: hf:OWNER/NAME, with /FILE or @REVISION after it", where);
  std::string_view rest = where.substr(kScheme.size());
  if (rest.starts_with("//")) rest.remove_prefix(2);
  Address out;
  if (const std::size_t at = rest.rfind('@'); at != rest.npos) {
    out.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!is_relative(out.revision) || out.revision.empty()) return error;
  }
  const std::size_t first = rest.find('/');
  if (first == rest.npos) return error;
  out.owner = rest.substr(0, first);
  rest.remove_prefix(first + 1);
  const std::size_t second = std::min(rest.find('/'), rest.size());
  out.name = rest.substr(0, second);
  rest.remove_prefix(std::min(second + 1, rest.size()));
  out.file = rest;
  if (!is_name(out.owner) || !is_name(out.name) || !is_relative(out.file)) return error;
  return out;
}

std::string endpoint() {
  std::string out = sys::environment("HF_ENDPOINT");
  if (out.empty()) out = kEndpoint;
  while (out.ends_with('/')) out.pop_back();
  return out;
}

/// Returns the folder of the Hub's own programs; empty if none is known.
std::string home() {
  std::string given = sys::environment("HF_HOME");
  if (!given.empty()) return given;
  const std::string cache = sys::cache_folder();
  return cache.empty() ? "" : cache + "/huggingface";
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin));
}

/// Returns a small file's text without space around it; empty if it cannot be read.
std::string text_of_file(const std::string& path) {
  convert::LocalFiles files;
  const Result<convert::Input> file = files.open(path);
  if (!file || file->size > kMostToken) return "";
  const Result<std::vector<std::byte>> bytes = convert::read_head(*file, kMostToken);
  return bytes ? trimmed({reinterpret_cast<const char*>(bytes->data()), bytes->size()}) : "";
}

std::string token() {
  std::string out = trimmed(sys::environment("HF_TOKEN"));
  const std::string path = sys::environment("HF_TOKEN_PATH");
  if (out.empty() && !path.empty()) out = text_of_file(path);
  if (out.empty() && path.empty() && !home().empty()) out = text_of_file(home() + "/token");
  return out;
}

/// Returns the folder of a revision's files in the user's cache; empty if there is none.
std::string snapshot_of(const Address& address) {
  std::string cache = sys::environment("HF_HUB_CACHE");
  if (cache.empty() && !home().empty()) cache = home() + "/hub";
  if (cache.empty()) return "";
  const std::string folder = cache + "/models--" + address.owner + "--" + address.name;
  const std::string commit = text_of_file(folder + "/refs/" + address.revision);
  const std::string out = folder + "/snapshots/" + (commit.empty() ? address.revision : commit);
  std::error_code error;
  const bool good = (commit.empty() || is_name(commit)) && fs::is_directory(sys::path_of(out), error);
  return good ? out : "";
}

struct Entry {
  std::string name;
  std::uint64_t size = 0;
};

/// Part `number` of `count` of a divided GGUF, by its name's ending, such as -00001-of-00003.gguf.
struct Division {
  std::string stem;
  std::uint32_t number = 0, count = 0;
};
std::optional<Division> division_of(std::string_view name) {
  if (name.size() < kPart.size()) return {};
  const std::string_view ending = name.substr(name.size() - kPart.size());
  Division out{std::string(name.substr(0, name.size() - kPart.size()))};
  for (std::size_t i = 0; i < kPart.size(); ++i) {
    const bool digit = ending[i] >= '0' && ending[i] <= '9';
    if (kPart[i] != '0' ? ending[i] != kPart[i] : !digit) return {};
    if (kPart[i] != '0') continue;
    std::uint32_t& to = i < kPart.find("-of-") ? out.number : out.count;
    to = 10 * to + static_cast<std::uint32_t>(ending[i] - '0');
  }
  return out;
}

bool ends_with(std::string_view name, std::string_view ending) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return name.size() >= ending.size() &&
         std::ranges::equal(name.substr(name.size() - ending.size()), ending, {}, lower, lower);
}

/// Returns the models that are one file each, or one divided file: the names of their first parts, with the size of
/// all. Files of images and of quantizing are none.
std::vector<Entry> candidates(std::span<const Entry> files, ModelUse use) {
  std::vector<Entry> out;
  std::map<std::string, std::pair<std::uint32_t, Entry>> divided;  // by stem: the parts that are there
  for (const Entry& file : files) {
    const std::string name = file.name.substr(file.name.rfind('/') + 1);
    if (std::ranges::any_of(kOthers, [&](std::string_view word) { return name.find(word) != name.npos; })) continue;
    if (const std::optional<Division> part = division_of(file.name)) {
      auto& [n, all] = divided[part->stem];
      if (part->number == 1) all.name = file.name;
      all.size += file.size;
      n = n == 0 ? part->count - 1 : n - 1;
    } else if (std::ranges::any_of(kEndings, [&](const Ending& ending) {
                 return (use == ModelUse::run || ending.converts) && ends_with(name, ending.text);
               })) {
      out.push_back(file);
    }
  }
  for (const auto& [stem, parts] : divided) {
    if (parts.first == 0 && !parts.second.name.empty()) out.push_back(parts.second);
  }
  return out;
}

/// Returns the largest model whose weights leave a share of the budget to everything else, or the smallest of all.
const Entry& best_of(std::span<const Entry> all, std::uint64_t budget, bool& fits) {
  const Entry* best = nullptr;
  for (const Entry& entry : all) {
    if (entry.size <= budget / kShareOf * kShare && (best == nullptr || entry.size > best->size)) best = &entry;
  }
  fits = best != nullptr;
  return fits ? *best : *std::ranges::min_element(all, {}, &Entry::size);
}

constexpr std::string_view kFits = " that fits in the budget",
                           kNoneFits = " that are there, none of which fits in the budget";

std::string note_on(const Address& address, const Entry& chosen, std::size_t n, std::string_view why) {
  return make_error(ErrorCode::none, "hf:{:.120}: {:.160} of {:.1f} MiB is read, the {} of {}{}", address.repository(),
                    chosen.name, static_cast<double>(chosen.size) / kMiB, why == kNoneFits ? "smallest" : "largest", n,
                    why)
      .sentence;
}

/// Returns the files of a folder of the cache.
std::vector<Entry> files_in(const std::string& folder) {
  std::vector<Entry> out;
  std::error_code error;
  for (fs::recursive_directory_iterator at(sys::path_of(folder), error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (!at->is_regular_file(gone)) continue;
    const std::uint64_t size = at->file_size(gone);
    if (!gone) out.push_back({sys::text_of(fs::relative(at->path(), sys::path_of(folder), gone)), size});
  }
  std::ranges::sort(out, {}, &Entry::name);
  return out;
}

/// Whether the cache has a file, with all parts of a divided one.
bool is_in(const std::string& snapshot, const std::string& file) {
  if (snapshot.empty()) return false;
  std::error_code error;
  if (!fs::is_regular_file(sys::path_of(snapshot + "/" + file), error)) return false;
  const std::optional<Division> part = division_of(file);
  if (!part) return true;
  const std::vector<Entry> all = files_in(snapshot);
  return std::ranges::count_if(all, [&](const Entry& entry) {
           const std::optional<Division> other = division_of(entry.name);
           return other && other->stem == part->stem;
         }) == part->count;
}

struct Listing {
  std::string commit;
  std::vector<Entry> files;
};

Result<Listing> read_listing(const std::string& text) {
  const Error damaged = make_error(ErrorCode::bad_input, "the server's list of the repository's files makes no sense");
  QSF_LET(json, convert::parse_json(text, "the list of the repository's files"));
  const Json *commit = convert::find(json, "sha"), *files = convert::find(json, "siblings");
  if (commit == nullptr || convert::as_text(*commit) == nullptr || files == nullptr || !files->is_array())
    return damaged;
  Listing out{*convert::as_text(*commit), {}};
  if (!is_name(out.commit)) return damaged;
  for (const Json& file : *files) {
    const Json *name = convert::find(file, "rfilename"), *size = convert::find(file, "size");
    const std::string* const text_of_name = name == nullptr ? nullptr : convert::as_text(*name);
    if (text_of_name == nullptr || !is_relative(*text_of_name)) return damaged;
    out.files.push_back({*text_of_name, size == nullptr ? 0 : convert::as_u64(*size).value_or(0)});
  }
  return out;
}

/// Returns a revision as one part of a path.
std::string as_part(const std::string& revision) {
  std::string out = encoded_for_url(revision);
  for (std::size_t at = out.find('/'); at != out.npos; at = out.find('/')) out.replace(at, 1, "%2F");
  return out;
}

std::string resolved(const Address& address, const std::string& revision, const std::string& file) {
  return endpoint() + "/" + address.repository() + "/resolve/" + as_part(revision) + "/" + encoded_for_url(file);
}

}  // namespace

Error hub_error(const Error& error, std::uint32_t status, std::string_view where) {
  if (error.code != ErrorCode::http_status) return error;
  switch (status) {
    case 401:
      return make_error(error.code,
                        "{:.200} is private or is not there: HF_TOKEN names a token of an account that may read it "
                        "(status 401)",
                        where);
    case 403:
      return make_error(error.code,
                        "{:.200} is gated: its terms are to be accepted on its page at {:.120}, and HF_TOKEN names a "
                        "token of that account (status 403)",
                        where, endpoint());
    case 404:
      return make_error(error.code, "{:.200} is not there: no such repository, revision or file (status 404)", where);
    case 429:
      return make_error(error.code, "the Hub takes no more requests for a while (status 429): {:.200}", where);
    default:
      return error;
  }
}

Result<HubModel> find_in_hub(const std::string& where, const SourceOptions& options, ModelUse use) {
  QSF_LET(address, address_of(where));
  const std::string snapshot = snapshot_of(address);
  HubModel out;
  out.token = token();
  if (!address.file.empty()) {
    if (is_in(snapshot, address.file)) {
      out.path = snapshot + "/" + address.file;
    } else {
      out.url = resolved(address, address.revision, address.file);
    }
    return out;
  }
  std::uint32_t status = 0;
  SourceOptions asking = options;
  asking.token = out.token;
  asking.status = &status;
  const std::string url =
      endpoint() + "/api/models/" + address.repository() + "/revision/" + as_part(address.revision) + "?blobs=true";
  const Result<std::string> text = http_text(url, asking, kMostBytes);
  Listing listing;
  if (text) {
    QSF_LET(read, read_listing(*text));
    listing = std::move(read);
  } else if (snapshot.empty() || text.error().code == ErrorCode::http_status) {
    return hub_error(text.error(), status, where);
  } else {
    listing.files = files_in(snapshot);  // without a network
  }
  const std::vector<Entry> models = candidates(listing.files, use);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(listing.files, name, &Entry::name) != listing.files.end();
  };
  if (models.empty() && !has("config.json")) {
    return make_error(ErrorCode::unsupported, "{:.200} has no GGUF{} file, and no config.json", where,
                      use == ModelUse::run ? " or .qsf" : "");
  }
  bool fits = false;
  if (!models.empty()) {
    const std::uint64_t budget = use == ModelUse::run ? options.budget : ~std::uint64_t{0};
    const Entry& chosen = best_of(models, budget, fits);
    out.note = note_on(address, chosen, models.size(), use == ModelUse::convert ? "" : fits ? kFits : kNoneFits);
    if (is_in(snapshot, chosen.name) || !text) {
      out.path = snapshot + "/" + chosen.name;
    } else {
      out.url = resolved(address, listing.commit, chosen.name);
    }
    return out;
  }
  for (const Entry& file : listing.files) out.names.push_back(file.name);
  const auto in_cache = [&](const std::string& name) { return is_in(snapshot, name); };
  const auto is_weights = [](const std::string& name) { return ends_with(name, ".safetensors"); };
  const bool whole =
      !snapshot.empty() && std::ranges::any_of(out.names, is_weights) &&
      std::ranges::all_of(out.names, [&](const std::string& name) { return !is_weights(name) || in_cache(name); }) &&
      in_cache("config.json");
  if (whole || !text) {
    out.path = snapshot;
  } else {
    out.url = resolved(address, listing.commit, "");
  }
  return out;
}

}  // namespace qsf
