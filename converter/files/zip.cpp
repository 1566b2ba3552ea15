#include "converter/files/zip.h"

#include <algorithm>
#include <vector>

#include "converter/files/byte_ranges.h"
#include "qsf/base/bytes.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50,
                        kEnd64Magic = 0x06064b50, kLocatorMagic = 0x07064b50;
constexpr std::uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr std::uint64_t kMaxComment = 0xffff;
constexpr std::uint16_t kEncrypted = 1, kStored = 0, kExtra64 = 1;
constexpr std::uint32_t kIn64 = 0xffffffff;

Error damaged(const Input& file, const char* what) {
  return make_error(ErrorCode::bad_input, "{:.100}: the zip archive is damaged: {}", file.name, what);
}

struct Directory {
  std::uint64_t n_entries = 0, size = 0, begin = 0;
  std::uint64_t end = 0;  // the position of the records after it
};

/// Reads the 64-bit end record, if a locator before the end record points to one.
Status read_end64(const Input& file, std::uint64_t end_at, Directory& out) {
  if (end_at < kLocatorBytes) return {};
  QSF_LET(locator_bytes, read_range(file, end_at - kLocatorBytes, kLocatorBytes));
  ByteReader locator(locator_bytes);
  if (locator.read<std::uint32_t>() != kLocatorMagic) return {};
  locator.take(4);  // the disk
  const auto at = locator.read<std::uint64_t>();
  if (at > end_at || end_at - at < kLocatorBytes + kEnd64Bytes) return damaged(file, "its 64-bit record is elsewhere");
  QSF_LET(bytes, read_range(file, at, kEnd64Bytes));
  ByteReader in(bytes);
  if (in.read<std::uint32_t>() != kEnd64Magic) return damaged(file, "its 64-bit record is not at the stated offset");
  in.take(8 + 2 + 2);  // its size, versions
  const auto disk = in.read<std::uint32_t>(), first_disk = in.read<std::uint32_t>();
  const auto here = in.read<std::uint64_t>();
  out.n_entries = in.read<std::uint64_t>();
  out.size = in.read<std::uint64_t>();
  out.begin = in.read<std::uint64_t>();
  out.end = at;
  if (disk == 0 && first_disk == 0 && here == out.n_entries) return {};
  return make_error(ErrorCode::unsupported, "{:.100}: the zip archive has more than one part", file.name);
}

/// Finds the end record: the last one with a comment that reaches the file's end.
Result<Directory> find_directory(const Input& file) {
  const std::uint64_t size = std::min(file.size, kEndBytes + kMaxComment);
  QSF_LET(tail, read_range(file, file.size - size, size));
  for (std::uint64_t back = kEndBytes; back <= size; ++back) {
    ByteReader in(std::span<const std::byte>(tail).subspan(size - back));
    if (in.read<std::uint32_t>() != kEndMagic) continue;
    const auto disk = in.read<std::uint16_t>(), first_disk = in.read<std::uint16_t>();
    const auto here = in.read<std::uint16_t>(), all = in.read<std::uint16_t>();
    const auto directory_size = in.read<std::uint32_t>(), directory_begin = in.read<std::uint32_t>();
    if (in.read<std::uint16_t>() != in.left()) continue;
    Directory out{all, directory_size, directory_begin, file.size - back};
    QSF_TRY(read_end64(file, file.size - back, out));
    if (disk != 0 || first_disk != 0 || here != all) {
      return make_error(ErrorCode::unsupported, "{:.100}: the zip archive has more than one part", file.name);
    }
    if (out.begin > out.end || out.size > out.end - out.begin) {
      return damaged(file, "its directory passes the file's end");
    }
    if (out.n_entries > kMaxZipEntries || out.size > kMaxZipDirectory) {
      return make_error(ErrorCode::unsupported, "{:.100}: the zip archive has {} entries, {} is the most", file.name,
                        out.n_entries, kMaxZipEntries);
    }
    return out;
  }
  return make_error(ErrorCode::truncated, "{:.100}: the zip archive has no end: is the file whole?", file.name);
}

struct Entry {
  std::string name;
  std::uint64_t header = 0;  // the position of its local header
  ZipEntry data;
};

/// Reads numbers that do not fit in 32 bits. They are in a field after the name, in this order.
Status read_extra64(const Input& file, std::span<const std::byte> extra, std::span<std::uint64_t* const> numbers) {
  ByteReader in(extra);
  while (!in.bad() && in.left() >= 4) {
    const auto kind = in.read<std::uint16_t>();
    const auto size = in.read<std::uint16_t>();
    ByteReader field(in.take(size));
    if (kind != kExtra64) continue;
    for (std::uint64_t* number : numbers) {
      if (*number == kIn64) *number = field.read<std::uint64_t>();
    }
    return field.bad() || in.bad() ? Status(damaged(file, "an entry's 64-bit numbers are missing")) : Status();
  }
  const bool missing = std::ranges::any_of(numbers, [](const std::uint64_t* number) { return *number == kIn64; });
  return missing ? Status(damaged(file, "an entry's 64-bit numbers are missing")) : Status();
}

Result<Entry> read_entry(const Input& file, ByteReader& in) {
  Entry out;
  if (in.read<std::uint32_t>() != kEntryMagic) return damaged(file, "its directory has fewer entries than it says");
  in.take(2 + 2);  // versions
  const auto flags = in.read<std::uint16_t>(), method = in.read<std::uint16_t>();
  in.take(2 + 2 + 4);  // time, date, checksum
  std::uint64_t packed = in.read<std::uint32_t>();
  out.data.size = in.read<std::uint32_t>();
  const auto name_size = in.read<std::uint16_t>(), extra_size = in.read<std::uint16_t>(),
             comment_size = in.read<std::uint16_t>();
  in.take(2 + 2 + 4);  // disk, attributes
  out.header = in.read<std::uint32_t>();
  out.name = in.text(name_size);
  const std::span<const std::byte> extra = in.take(extra_size);
  in.take(comment_size);
  if (in.bad()) return damaged(file, "its directory ends within an entry");
  QSF_TRY(read_extra64(file, extra, std::array{&out.data.size, &packed, &out.header}));
  if ((flags & kEncrypted) != 0 || method != kStored || packed != out.data.size) {
    return make_error(ErrorCode::unsupported,
                      "{:.100}: {:.80} is compressed or encrypted, and torch.save stores its entries as they are",
                      file.name, out.name);
  }
  return out;
}

/// Finds the data after the local header. The header's own sizes may be missing, but its name must be the directory's.
Status find_data(const Input& file, const Directory& directory, Entry& entry) {
  const std::uint64_t front = kLocalBytes + entry.name.size();
  if (entry.header > directory.begin || front > directory.begin - entry.header) {
    return damaged(file, "an entry begins after the directory");
  }
  QSF_LET(bytes, read_range(file, entry.header, front));
  ByteReader in(bytes);
  const bool magic = in.read<std::uint32_t>() == kLocalMagic;
  in.take(22);
  const auto name_size = in.read<std::uint16_t>(), extra_size = in.read<std::uint16_t>();
  if (!magic || name_size != entry.name.size() || in.text(name_size) != entry.name) {
    return damaged(file, "an entry has another name than the directory says");
  }
  entry.data.begin = entry.header + front + extra_size;
  if (entry.data.begin > directory.begin || entry.data.size > directory.begin - entry.data.begin) {
    return make_error(ErrorCode::truncated, "{:.100}: {:.80} has {} bytes at {}, which pass the archive's end",
                      file.name, entry.name, entry.data.size, entry.data.begin);
  }
  return {};
}

}  // namespace

bool is_zip(std::span<const std::byte> head) {
  return head.size() >= 4 && load_le<std::uint32_t>(head.data()) == kLocalMagic;
}

Result<ZipEntries> read_zip(const Input& file) {
  QSF_LET(directory, find_directory(file));
  if (directory.n_entries > directory.size / kEntryBytes) return damaged(file, "its directory is too short");
  QSF_LET(bytes, read_range(file, directory.begin, directory.size));
  ByteReader in(bytes);
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < directory.n_entries; ++i) {
    QSF_LET(entry, read_entry(file, in));
    QSF_TRY(find_data(file, directory, entry));
    entries.push_back(std::move(entry));
  }
  std::vector<ByteRange> ranges;
  for (const Entry& entry : entries) ranges.push_back({entry.header, entry.data.begin + entry.data.size, entry.name});
  QSF_TRY(check_no_overlap(ranges, file.name));
  ZipEntries out;
  for (Entry& entry : entries) {
    if (out.try_emplace(std::move(entry.name), entry.data).second) continue;
    return make_error(ErrorCode::bad_input, "{:.100}: the zip archive has {:.80} twice", file.name, entry.name);
  }
  return out;
}

}  // namespace qsf::convert
