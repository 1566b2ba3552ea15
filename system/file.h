// Files by descriptor. Functions that fail return false or -1 and set errno. Paths are UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace qsf::sys {

enum class FileKind : std::uint8_t { regular, folder, pipe, socket, device };

/// The properties of a file, by its descriptor or by a path with links followed.
struct FileInfo {
  FileKind kind = FileKind::regular;
  std::uint64_t size = 0;                // bytes
  std::uint64_t volume = 0, number = 0;  // together they identify the file
  std::int64_t modified = 0;             // nanoseconds since an epoch of the system
  std::uint32_t mode = 0;                // permissions, if the system has them
  bool is(const FileInfo& other) const { return volume == other.volume && number == other.number; }
};
bool look(const std::string& path, FileInfo& out);
bool look(int file, FileInfo& out);

/// Returns the place of the next read in a regular file, or nothing for other files, which are read only once.
std::optional<std::uint64_t> place_in(int file);

/// Opens a regular file for read_at(). Never waits for a writer, even if a pipe has replaced the file.
int open_file(const std::string& path);
/// Opens anything that can be read from front to back. Does not wait for the writer of a named pipe, which
/// wait_readable() waits for; a read before may find an end.
int open_input(const std::string& path);
/// Opens an existing device or pipe for writing. Fails with ENXIO if nobody has opened a named pipe for reading.
int open_output(const std::string& path);
/// Creates a file for writing. Fails with EEXIST if the name exists.
int create_file(const std::string& path);
bool close_file(int file);

/// Returns the bytes read, 0 at the file's end. Several threads may read one file.
std::ptrdiff_t read_at(int file, std::uint64_t at, std::span<std::byte> into);
/// Returns the bytes written. Fails with EINTR if a signal came first.
std::ptrdiff_t write_at(int file, std::uint64_t at, std::span<const std::byte> bytes);
/// Writes at the end of the previous write, as write_at() does.
std::ptrdiff_t write_some(int file, std::span<const std::byte> bytes);
/// Writes the file's data to the disk.
bool flush_file(int file);

/// Renames `from`, which may be open, to `to`, and replaces a file of that name. On Windows, the replaced file must not
/// be open anywhere.
bool replace_file(const std::string& from, const std::string& to);
bool remove_file(const std::string& path);
/// Whether the permissions allow writing.
bool is_writable(const std::string& path);
/// Copies the permissions of a file to the new file that will replace it, if the file system has permissions.
void copy_mode(int file, const FileInfo& from);
/// Whether a text is a single name in a folder, not a path.
bool is_single_name(std::string_view text);
/// Returns the part of a path before its last name, with the separator, or an empty text.
std::string folder_of(const std::string& path);
/// Returns the path with links followed, or the path itself if that fails.
std::string resolved(const std::string& path);

/// Fills `out` with unpredictable random bytes for names. Returns false if the system has none.
bool random_bytes(std::span<std::byte> out);
std::uint32_t process_number();
/// Returns a variable of the environment in UTF-8, or an empty text if it is not set.
std::string environment(const char* name);
/// Returns the user's folder for data that can be made again, such as "~/.cache", or an empty text if none is known.
std::string cache_folder();

/// Converts UTF-8 to a path of the standard library, and back. On systems whose names are characters, invalid bytes
/// become a replacement character.
std::filesystem::path path_of(std::string_view text);
std::string text_of(const std::filesystem::path& path);

}  // namespace qsf::sys
