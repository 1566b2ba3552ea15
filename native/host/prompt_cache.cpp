#include "native/host/prompt_cache.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "native/host/saved_file.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/temporary.h"

namespace qsf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".qsfs";
constexpr std::uint32_t kLeastNew = 16;  // tokens: a file of fewer saves less time than it takes
constexpr std::size_t kHashDigits = 16;  // of a name

/// Returns the beginning of the names of a session's files.
std::string prefix_of(const Session& session) {
  const Stats s = session.stats();
  const std::string policy =
      s.kv_window == 0 ? "" : "-" + std::to_string(s.kv_sinks) + "+" + std::to_string(s.kv_window);
  return std::string(session.model_hash().substr(0, kHashDigits)) + "-" + std::string(kv_name(s.kv)) + policy + "-";
}

std::string name_of(std::span<const std::uint32_t> ids) {
  Sha256 sha;
  sha.update(std::as_bytes(ids));
  return std::string(hex(sha.digest()).data(), kHashDigits);
}

std::uint32_t common(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  return static_cast<std::uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

void use(const std::string& path) {
  std::error_code ignored;  // a file that others removed needs no time
  fs::last_write_time(sys::path_of(path), fs::file_time_type::clock::now(), ignored);
}

/// Returns the tokens of a saved prompt with which a sequence can begin these ids: all but the last, whose logits are
/// wanted.
std::uint32_t usable(const SavedFile& file, std::span<const std::uint32_t> ids) {
  const Result<std::vector<std::uint32_t>> saved = file.tokens();
  if (!saved || ids.empty()) return 0;
  return file.header().reach(common(*saved, ids.first(ids.size() - 1)));
}

/// Returns whether a file has fewer tokens than `ids`, which begin with them.
bool begins(const std::string& path, std::span<const std::uint32_t> ids) {
  const Result<SavedFile> file = SavedFile::open(path);
  if (!file || file->header().n_tokens >= ids.size()) return false;
  const Result<std::vector<std::uint32_t>> saved = file->tokens();
  return saved && common(*saved, ids) == saved->size();
}

}  // namespace

Result<PromptCache> PromptCache::open(const std::string& folder, std::uint64_t most_bytes) {
  std::error_code error, ignored;
  fs::create_directories(sys::path_of(folder), error);
  if (!fs::is_directory(sys::path_of(folder), ignored)) {
    return make_error(ErrorCode::io_error, "cannot make the folder {:.300}: {}", folder,
                      error ? error.message() : "there is something else of that name");
  }
  return PromptCache(folder, most_bytes);
}

std::vector<PromptCache::Entry> PromptCache::entries(const std::string& prefix) const {
  std::vector<Entry> out;
  std::error_code error;
  for (fs::directory_iterator at(sys::path_of(folder_), error), end; !error && at != end; at.increment(error)) {
    const std::string name = sys::text_of(at->path().filename());
    std::error_code gone;
    if (!name.starts_with(prefix) || !name.ends_with(kEnding) || !at->is_regular_file(gone)) continue;
    const std::uint64_t bytes = at->file_size(gone);
    const fs::file_time_type used = at->last_write_time(gone);
    if (!gone) out.push_back({folder_ + "/" + name, bytes, used.time_since_epoch().count()});
  }
  return out;
}

Result<bool> PromptCache::restore(Session& session, std::span<const std::uint32_t> ids, std::uint32_t known) const {
  const std::uint32_t most = session.stats().max_seq_len;
  std::string best;
  for (const Entry& entry : entries(prefix_of(session))) {
    const Result<SavedFile> file = SavedFile::open(entry.path);
    if (!file || file->header().n_tokens > most) continue;
    const std::uint32_t here = usable(*file, ids);
    if (here <= known) continue;
    known = here;
    best = entry.path;
  }
  if (best.empty()) return false;
  const Result<SavedFile> file = SavedFile::open(best);
  if (!file) return false;  // another process removed it
  const Status restored = file->restore(session);
  if (restored) {
    use(best);
    return true;
  }
  if (restored.error().code == ErrorCode::bad_state) return restored.error();
  sys::remove_file(best);
  return false;
}

Status PromptCache::save(Session& session, std::uint32_t n, std::uint32_t computed) const {
  if (computed < kLeastNew) return {};
  const std::string prefix = prefix_of(session);
  const std::span<const std::uint32_t> ids = session.tokens().first(n);
  const std::string path = folder_ + "/" + prefix + name_of(ids) + std::string(kEnding);
  QSF_LET(bytes, session.begin_save({}, n));
  QSF_LET(header, read_saved_header(bytes));
  if (header.file_bytes() > most_bytes_) return {};
  std::vector<Entry> replaced, others;
  const bool goes_back = header.from == 0 && header.state_bytes == 0;  // anywhere, so shorter ones add nothing
  for (const Entry& entry : entries("")) {
    const bool begins_it = goes_back && entry.path.starts_with(folder_ + "/" + prefix) && begins(entry.path, ids);
    (begins_it || entry.path == path ? replaced : others).push_back(entry);
  }
  std::uint64_t sum = header.file_bytes();
  for (const Entry& entry : others) sum += entry.bytes;
  std::ranges::sort(others, {}, &Entry::used);
  for (const Entry& entry : others) {
    if (sum <= most_bytes_) break;
    if (sys::remove_file(entry.path)) sum -= entry.bytes;
  }
  sys::remove_abandoned(folder_);
  QSF_TRY(save_to_file(session, path, {}, n, false));
  for (const Entry& entry : replaced) {
    if (entry.path != path) sys::remove_file(entry.path);
  }
  return {};
}

}  // namespace qsf
