#include "native/made/front_cache.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "converter/files/output_file.h"
#include "native/sources/regular_file.h"
#include "qsf/base/bytes.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "system/temporary.h"

namespace qsf {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

// A file of the cache: the magic number, the CRC-32 of everything after it, and the fields in the order of
// write_front().
constexpr std::string_view kMagic = "QSFFRNT1";
constexpr std::size_t kCrcAt = kMagic.size(), kBodyAt = kCrcAt + sizeof(std::uint32_t);
constexpr std::string_view kEnding = ".front";
constexpr std::uint64_t kMostOfOne = 192u << 20;  // a larger front is not stored

class Out {
 public:
  template <class T>
  void number(T value) {
    bytes.resize(bytes.size() + sizeof value);
    store_le(bytes.data() + bytes.size() - sizeof value, value);
  }
  void run(std::span<const std::byte> run) {
    number(std::uint64_t{run.size()});
    bytes.insert(bytes.end(), run.begin(), run.end());
  }
  void text(std::string_view text) { run(std::as_bytes(std::span(text))); }

  Bytes bytes;
};

class In {
 public:
  explicit In(std::span<const std::byte> bytes) : reader_(bytes) {}
  template <class T>
  T number() {
    return reader_.read<T>();
  }
  std::span<const std::byte> run() { return reader_.take(reader_.read<std::uint64_t>()); }
  std::string text() {
    const std::span<const std::byte> bytes = run();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Calls each() as often as a number says, as far as there are bytes.
  template <class Each>
  void list(Each each) {
    for (auto n = number<std::uint32_t>(); n > 0 && !reader_.bad(); --n) each();
  }
  bool whole() const { return !reader_.bad() && reader_.left() == 0; }

 private:
  ByteReader reader_;
};

Bytes encoded(const std::string& key, const Front& front) {
  Out out;
  out.bytes.resize(kBodyAt);
  out.text(key);
  out.number(static_cast<std::uint32_t>(front.inputs.size()));
  for (const FrontInput& input : front.inputs) {
    out.text(input.path);
    out.number(input.size);
    out.number(input.volume);
    out.number(input.number);
    out.number(input.modified);
  }
  out.number(static_cast<std::uint32_t>(front.addresses.size()));
  for (const FrontAddress& address : front.addresses) {
    out.text(address.url);
    out.text(address.identity);
  }
  out.number(static_cast<std::uint32_t>(front.warnings.size()));
  for (const std::string& warning : front.warnings) out.text(warning);
  out.run(std::as_bytes(std::span(front.checked)));
  out.number(front.size);
  out.run(front.bytes);
  std::ranges::copy(std::as_bytes(std::span(kMagic)), out.bytes.begin());
  store_le(out.bytes.data() + kCrcAt, crc32(std::span(out.bytes).subspan(kBodyAt)));
  return std::move(out.bytes);
}

std::optional<Front> decoded(const std::string& key, std::span<const std::byte> bytes) {
  if (bytes.size() < kBodyAt || !std::ranges::equal(bytes.first(kMagic.size()), std::as_bytes(std::span(kMagic))) ||
      load_le<std::uint32_t>(bytes.data() + kCrcAt) != crc32(bytes.subspan(kBodyAt))) {
    return {};
  }
  In in(bytes.subspan(kBodyAt));
  if (in.text() != key) return {};
  Front front;
  in.list([&] {
    FrontInput input;
    input.path = in.text();
    input.size = in.number<std::uint64_t>();
    input.volume = in.number<std::uint64_t>();
    input.number = in.number<std::uint64_t>();
    input.modified = in.number<std::int64_t>();
    front.inputs.push_back(std::move(input));
  });
  in.list([&] {
    std::string url = in.text();
    front.addresses.push_back({std::move(url), in.text()});
  });
  in.list([&] { front.warnings.push_back(in.text()); });
  for (const std::byte each : in.run()) front.checked.push_back(std::to_integer<std::uint8_t>(each));
  front.size = in.number<std::uint64_t>();
  const std::span<const std::byte> run = in.run();
  front.bytes.assign(run.begin(), run.end());
  return in.whole() ? std::optional(std::move(front)) : std::nullopt;
}

}  // namespace

FrontInput FrontInput::of(const std::string& path, const sys::FileInfo& info) {
  return {path, info.kind == sys::FileKind::folder ? 0 : info.size, info.volume, info.number, info.modified};
}

bool FrontInput::unchanged() const {
  sys::FileInfo info;
  return sys::look(path, info) && of(path, info) == *this;
}

std::string FrontCache::path_of(const std::string& key) const {
  constexpr std::size_t kDigits = 32;
  Sha256 sum;
  sum.update(std::as_bytes(std::span(key)));
  return folder_ + "/" + std::string(hex(sum.digest()).data(), kDigits).append(kEnding);
}

std::optional<Front> FrontCache::find(const std::string& key) const {
  if (folder_.empty()) return {};
  const std::string path = path_of(key);
  std::uint64_t size = 0;
  Result<OpenFile> file = open_regular(path, size);
  if (!file || size > kMostOfOne) return {};
  Bytes bytes(size);
  if (!read_all(file->fd(), 0, bytes)) return {};
  std::optional<Front> front = decoded(key, bytes);
  if (!front || !std::ranges::all_of(front->inputs, &FrontInput::unchanged)) return {};
  front->file = std::move(*file);
  front->at = size - front->bytes.size();
  std::error_code ignored;  // the date says when the front was used, and nothing else
  fs::last_write_time(sys::path_of(path), fs::file_time_type::clock::now(), ignored);
  return front;
}

Status FrontCache::keep(const std::string& key, const Front& front) const {
  if (folder_.empty() || front.bytes.size() > kMostOfOne / 2) return {};
  std::error_code ignored;  // a failure is reported when the file is created
  fs::create_directories(sys::path_of(folder_), ignored);
  QSF_LET(file, convert::OutputFile::create(path_of(key)));
  QSF_TRY(file.write_at(0, encoded(key, front)));
  QSF_TRY(file.commit());
  limit();
  return {};
}

/// Removes the fronts that were used longest ago, above the limits, and what killed processes left.
void FrontCache::limit() const {
  sys::remove_abandoned(folder_);
  struct Kept {
    fs::path path;
    fs::file_time_type used;
    std::uint64_t size = 0;
  };
  std::vector<Kept> all;
  std::error_code error;
  for (fs::directory_iterator at(sys::path_of(folder_), error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // another process may remove it at the same time
    if (!sys::text_of(at->path().filename()).ends_with(kEnding) || !at->is_regular_file(gone)) continue;
    const fs::file_time_type used = at->last_write_time(gone);
    const std::uint64_t size = gone ? 0 : at->file_size(gone);
    if (!gone) all.push_back({at->path(), used, size});
  }
  std::ranges::sort(all, std::ranges::greater(), &Kept::used);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bytes += all[i].size;
    if (i != 0 && (bytes > kMostBytes || i >= kMostFronts)) fs::remove(all[i].path, error);
  }
}

}  // namespace qsf
