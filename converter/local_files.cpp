#include "converter/local_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "qsf/base/try.h"

namespace qsf::convert {

namespace fs = std::filesystem;

class LocalFile {
 public:
  LocalFile(std::string path, int fd, const struct stat& info) : path_(std::move(path)), fd_(fd), info_(info) {}
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() { close(fd_); }

  std::uint64_t size() const { return static_cast<std::uint64_t>(info_.st_size); }
  bool is(const struct stat& other) const { return info_.st_dev == other.st_dev && info_.st_ino == other.st_ino; }

  Status read(std::uint64_t offset, std::span<std::byte> into) const {
    while (!into.empty()) {
      const ssize_t n = pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
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
    struct stat now{};
    if (fstat(fd_, &now) == 0 && now.st_size == info_.st_size && now.st_mtim.tv_sec == info_.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == info_.st_mtim.tv_nsec) {
      return {};
    }
    return make_error(ErrorCode::file_changed, "{:.120} was changed while it was read", path_);
  }

 private:
  std::string path_;
  int fd_;
  struct stat info_;
};

namespace {

Error cannot_open(const std::string& path) {
  return make_error(ErrorCode::io_error, "cannot open {:.120}: {}", path, std::strerror(errno));
}

}  // namespace

Result<Input> LocalFiles::open(const std::string& path) {
  // Devices act on being opened, so the path is looked at first; O_NONBLOCK, since it may have become a FIFO by then.
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return cannot_open(path);
  if (!S_ISREG(info.st_mode)) return make_error(ErrorCode::io_error, "{:.120} is not a regular file", path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return cannot_open(path);
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return make_error(ErrorCode::io_error, "{:.120} is not a regular file", path);
  }
  const auto file = std::make_shared<const LocalFile>(path, fd, info);
  files_.push_back(file);
  const auto read = [file](std::uint64_t offset, std::span<std::byte> into) { return file->read(offset, into); };
  return Input{fs::path(path).filename().string(), file->size(), read};
}

Result<std::optional<Input>> LocalFiles::find(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0 && errno == ENOENT) return std::optional<Input>();
  QSF_LET(input, open(path));
  return std::optional<Input>(std::move(input));
}

bool LocalFiles::contain(const std::string& path) const {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return false;
  return std::ranges::any_of(files_, [&](const auto& file) { return file->is(info); });
}

Status LocalFiles::unchanged() const {
  for (const auto& file : files_) QSF_TRY(file->unchanged());
  return {};
}

Result<ModelPlace> local_place(const std::string& path, const std::shared_ptr<LocalFiles>& files) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  const bool folder = fs::is_directory(path, error);
  ModelPlace place;
  const fs::path parent = folder ? fs::path(path) : fs::path(path).parent_path();
  place.folder.name = parent.string();
  place.folder.find = [parent, files](const std::string& name) { return files->find((parent / name).string()); };
  if (folder) {
    place.name = whole.filename().string();
    return place;
  }
  place.name = fs::path(path).stem().string();
  QSF_LET(file, files->open(path));
  QSF_LET(head, read_head(file, kHeadBytes));
  place.head = std::move(head);
  place.file = std::move(file);
  return place;
}

}  // namespace qsf::convert
