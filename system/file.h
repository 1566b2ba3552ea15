// Files by their descriptors. What fails gives false or -1 and says why in errno. Paths are UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace qsf::sys {

enum class FileKind : std::uint8_t { regular, folder, pipe, socket, device };

/// What a path, with links followed, or a descriptor leads to.
struct FileInfo {
  FileKind kind = FileKind::regular;
  std::uint64_t size = 0;                // bytes
  std::uint64_t volume = 0, number = 0;  // together which file it is
  std::int64_t modified = 0;             // nanoseconds since a day of the system's
  std::uint32_t mode = 0;                // permissions, where there are such
  bool is(const FileInfo& other) const { return volume == other.volume && number == other.number; }
};
bool look(const std::string& path, FileInfo& out);
bool look(int file, FileInfo& out);

/// A regular file for read_at(); never waits for a writer, whatever has taken the file's place.
int open_file(const std::string& path);
/// Anything that is read from front to back.
int open_input(const std::string& path);
/// What is there already: a device or a pipe.
int open_output(const std::string& path);
/// A new file for writing; EEXIST where there is something.
int create_file(const std::string& path);
bool close_file(int file);

/// Bytes read, 0 at the file's end. Several threads may read one file.
std::ptrdiff_t read_at(int file, std::uint64_t at, std::span<std::byte> into);
/// Bytes written; EINTR where a signal came first.
std::ptrdiff_t write_at(int file, std::uint64_t at, std::span<const std::byte> bytes);
/// The same behind what was written before.
std::ptrdiff_t write_some(int file, std::span<const std::byte> bytes);
/// To the disk.
bool flush_file(int file);

/// Gives `from`, which may be open, the name `to`, in place of a file that has it; on Windows that one is open nowhere.
bool replace_file(const std::string& from, const std::string& to);
bool remove_file(const std::string& path);
/// Whether it may be written, by its permissions.
bool is_writable(const std::string& path);
/// Gives a new file the permissions of the one it is to replace, where the file system has such.
void copy_mode(int file, const FileInfo& from);
/// Whether a text is a name of something in a folder, and no path.
bool is_single_name(std::string_view text);
/// The part of a path before its last name, with the separator; empty where there is none.
std::string folder_of(const std::string& path);
/// The path with links followed; itself where that cannot be told.
std::string resolved(const std::string& path);

/// Random bytes for names that nobody can foretell; false where there are none.
bool random_bytes(std::span<std::byte> out);
std::uint32_t process_number();
/// A variable of the environment in UTF-8; empty without it.
std::string environment(const char* name);
/// The folder for what can be made again: "~/.cache" of the system's; empty where none is told.
std::string cache_folder();

/// UTF-8 to what the standard library opens, and back; what is no character becomes a replacement where the system's
/// names are characters.
std::filesystem::path path_of(std::string_view text);
std::string text_of(const std::filesystem::path& path);

}  // namespace qsf::sys
