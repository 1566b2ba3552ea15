#include "native/made/remote_files.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "native/sources/address.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

/// Bytes that are read at least, because a request takes as long as many bytes. A larger number is memory.
constexpr std::uint64_t kAhead = 1u << 20;
constexpr std::uint64_t kMostOfRequest = 64u << 20;
constexpr std::uint32_t kMissing = 404;

/// Returns the last name of a folder's address; of a revision of a repository of the Hub, the repository's name.
std::string name_of_folder(std::string folder) {
  constexpr std::string_view kRevision = "/resolve/";
  folder.resize(folder.size() - std::min<std::size_t>(folder.size(), 1));
  const std::size_t revision = folder.rfind('/');
  if (revision != folder.npos && std::string_view(folder).substr(0, revision + 1).ends_with(kRevision)) {
    folder.resize(revision + 1 - kRevision.size());
  }
  return name_of_url(folder);
}

}  // namespace

class RemoteFile {
 public:
  RemoteFile(std::string url, const SourceOptions& options, Source source)
      : url_(std::move(url)), options_(options), size_(source.size()), identity_(source.identity()) {
    source_.emplace(std::move(source));
  }

  const std::string& url() const { return url_; }
  std::uint64_t size() const { return size_; }
  const std::string& identity() const { return identity_; }

  Status read(std::uint64_t offset, std::span<std::byte> into) {
    const std::lock_guard lock(mutex_);
    const auto held = [&] {
      return offset >= begin_ && offset - begin_ <= ahead_.size() && into.size() <= ahead_.size() - (offset - begin_);
    };
    if (!held()) {
      if (into.size() >= kAhead) return fetch(offset, into);
      ahead_.resize(std::min(kAhead, size_ - offset));
      const Status status = fetch(offset, ahead_);
      begin_ = offset;
      if (!status) ahead_.clear();
      QSF_TRY(status);
    }
    std::ranges::copy(std::span(ahead_).subspan(offset - begin_, into.size()), into.begin());
    return {};
  }

  void rest() {
    const std::lock_guard lock(mutex_);
    source_.reset();
    ahead_ = {};
  }

 private:
  Status fetch(std::uint64_t offset, std::span<std::byte> into) {
    if (!source_) {
      QSF_LET(source, Source::open(url_, options_));
      if (source.identity() != identity_) {
        return make_error(ErrorCode::file_changed, "the file changed on the server while it was being read");
      }
      source_.emplace(std::move(source));
    }
    while (!into.empty()) {
      ReadRequest request;
      request.offset = offset;
      request.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(into.size(), kMostOfRequest));
      request.into = into.data();
      source_->submit({&request, 1});
      Completion done;
      while (source_->reap({&done, 1}, std::chrono::hours(1)) == 0) {
      }
      QSF_TRY(done.status);
      offset += request.size;
      into = into.subspan(request.size);
    }
    return {};
  }

  const std::string url_;
  const SourceOptions options_;
  const std::uint64_t size_;
  const std::string identity_;
  std::mutex mutex_;  // guards all members below
  std::optional<Source> source_;
  std::vector<std::byte> ahead_;  // of the file, from begin_ on
  std::uint64_t begin_ = 0;
};

RemoteFiles::RemoteFiles(SourceOptions options, std::function<convert::Input(convert::Input)> wrap)
    : options_(std::move(options)), wrap_(std::move(wrap)) {
  options_.kind = {};
  options_.helped = false;
  options_.status = &status_;
}

RemoteFiles::~RemoteFiles() = default;

Result<convert::Input> RemoteFiles::open(const std::string& url) {
  QSF_LET(source, Source::open(url, options_));
  const auto file = std::make_shared<RemoteFile>(url, options_, std::move(source));
  files_.push_back(file);
  const auto read = [file](std::uint64_t offset, std::span<std::byte> into) { return file->read(offset, into); };
  return wrap_(convert::Input{name_of_url(url), file->size(), read, count() - 1});
}

Result<std::optional<convert::Input>> RemoteFiles::find(const std::string& url) {
  Result<convert::Input> input = open(url);
  if (input) return std::optional(std::move(*input));
  if (input.error().code == ErrorCode::http_status && status_ == kMissing) return std::optional<convert::Input>();
  // A web page, which some servers have for every address that they do not know.
  if (input.error().code == ErrorCode::bad_magic) return std::optional<convert::Input>();
  // An empty file has no ranges.
  if (input.error().code == ErrorCode::truncated) return std::optional<convert::Input>();
  return input.error();
}

const std::string& RemoteFiles::url(std::uint32_t number) const { return files_[number]->url(); }
std::uint64_t RemoteFiles::size(std::uint32_t number) const { return files_[number]->size(); }
const std::string& RemoteFiles::identity(std::uint32_t number) const { return files_[number]->identity(); }

void RemoteFiles::rest() {
  for (const auto& file : files_) file->rest();
}

Result<convert::ModelLocation> place_at(const std::string& url, const std::vector<std::string>& names,
                                        RemoteFiles& files) {
  convert::ModelLocation place;
  const std::string folder = folder_of_url(url), query = url.substr(std::min(url.find_first_of("?#"), url.size()));
  place.folder.name = without_secrets(folder);
  place.folder.find = [folder, query, names, &files](const std::string& name) -> Result<std::optional<convert::Input>> {
    if (!names.empty() && std::ranges::find(names, name) == names.end()) return std::optional<convert::Input>();
    return files.find(folder + encoded_for_url(name) + query);
  };
  const std::string name = name_of_url(url);
  if (name.empty()) {
    place.name = name_of_folder(folder);
    return place;
  }
  place.name = name.substr(0, name.rfind('.'));
  QSF_LET(file, files.open(url));
  QSF_LET(head, convert::read_head(file, convert::kHeadBytes));
  place.head = std::move(head);
  place.file = std::move(file);
  return place;
}

std::string folder_of_url(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  return path.substr(0, path.rfind('/') + 1);
}

std::string name_of_url(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  return path.substr(path.rfind('/') + 1);
}

std::string encoded_for_url(std::string_view name) {
  constexpr std::string_view kPlain = "-._~/";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != kPlain.npos) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

}  // namespace qsf
