#include "converter/files/local_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf::convert {

namespace fs = std::filesystem;

class LocalFile {
 public:
  explicit LocalFile(std::string path) : path_(std::move(path)) {}
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() {
    if (fd_ >= 0) sys::close_file(fd_);
  }

  /// Returns false if the system refuses.
  bool open() {
    fd_ = sys::open_file(path_);
    return fd_ >= 0 && sys::look(fd_, info_);
  }
  std::uint64_t size() const { return info_.size; }
  const std::string& path() const { return path_; }
  const sys::FileInfo& info() const { return info_; }
  bool is(const sys::FileInfo& other) const { return info_.is(other); }

  Status read(std::uint64_t offset, std::span<std::byte> into) const {
    while (!into.empty()) {
      const std::ptrdiff_t n = sys::read_at(fd_, offset, into);
      if (n < 0) return make_error(ErrorCode::io_error, "cannot read {:.120}: {}", path_, std::strerror(errno));
      if (n == 0) {
        return make_error(ErrorCode::file_changed, "{:.120} became shorter while it was read: {} of its {} bytes",
                          path_, offset, size());
      }
      offset += static_cast<std::uint64_t>(n);
      into = into.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  Status unchanged() const {
    sys::FileInfo now;
    if (sys::look(fd_, now) && now.size == info_.size && now.modified == info_.modified) return {};
    return make_error(ErrorCode::file_changed, "{:.120} was changed while it was read", path_);
  }

 private:
  std::string path_;
  int fd_ = -1;
  sys::FileInfo info_;
};

namespace {

Error cannot_open(const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot open {:.120}: {}", path, std::strerror(errno));
}

}  // namespace

Result<Input> LocalFiles::open(const std::string& path) {
  // The path is checked first, because opening a device can change its state.
  sys::FileInfo info;
  if (!sys::look(path, info)) return cannot_open(path);
  const auto file = std::make_shared<LocalFile>(path);  // owns the descriptor
  if (info.kind == sys::FileKind::regular) {
    if (!file->open()) return cannot_open(path);
    info = file->info();
  }
  if (info.kind != sys::FileKind::regular) {
    return make_error(ErrorCode::io_error, "{:.120} is not a regular file", path);
  }
  files_.push_back(file);
  const auto read = [file](std::uint64_t offset, std::span<std::byte> into) { return file->read(offset, into); };
  Input input{sys::text_of(sys::path_of(path).filename()), file->size(), read, count() - 1};
  return wrap_ ? wrap_(std::move(input)) : std::move(input);
}

Result<std::optional<Input>> LocalFiles::find(const std::string& path) {
  sys::FileInfo info;
  if (!sys::look(path, info) && errno == ENOENT) return std::optional<Input>();
  QSF_LET(input, open(path));
  return std::optional<Input>(std::move(input));
}

bool LocalFiles::contain(const std::string& path) const {
  sys::FileInfo info;
  if (!sys::look(path, info)) return false;
  return std::ranges::any_of(files_, [&](const auto& file) { return file->is(info); });
}

Status LocalFiles::unchanged() const {
  for (const auto& file : files_) QSF_TRY(file->unchanged());
  return {};
}

Status LocalFiles::unchanged(std::uint32_t number) const { return files_[number]->unchanged(); }

const std::string& LocalFiles::path(std::uint32_t number) const { return files_[number]->path(); }

const sys::FileInfo& LocalFiles::info(std::uint32_t number) const { return files_[number]->info(); }

Result<ModelLocation> local_place(const std::string& path, const std::shared_ptr<LocalFiles>& files) {
  std::error_code error;
  const fs::path given = sys::path_of(path);
  const fs::path whole = fs::weakly_canonical(given, error);
  const bool folder = fs::is_directory(given, error);
  ModelLocation place;
  const fs::path parent = folder ? given : given.parent_path();
  place.folder.name = sys::text_of(parent);
  place.folder.find = [parent, files](const std::string& name) {
    return files->find(sys::text_of(parent / sys::path_of(name)));
  };
  if (folder) {
    place.name = sys::text_of(whole.filename());
    return place;
  }
  place.name = sys::text_of(given.stem());
  QSF_LET(file, files->open(path));
  QSF_LET(head, read_head(file, kHeadBytes));
  place.head = std::move(head);
  place.file = std::move(file);
  return place;
}

}  // namespace qsf::convert
