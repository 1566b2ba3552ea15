// Saved sequences in files: docs/reference/format-session.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/sources/regular_file.h"
#include "qsf/engine.h"

namespace qsf {

/// Returns io_error unless save_to_file() can write a file of this path.
Status check_writable(const std::string& path);
/// Saves the first n tokens of a sequence to a file that appears whole or not at all; an earlier file stays until then.
/// With `flush`, the disk has it before the earlier file is replaced. Errors: those of Session::begin_save(), io_error.
Status save_to_file(Session& session, const std::string& path, std::string_view note,
                    std::uint32_t n_tokens = kAllTokens, bool flush = true);

/// Puts the tokens of a text that follows a saved sequence before those of a prompt. Errors: those of
/// Session::tokenize().
Status put_before(Session& session, std::string_view rest, std::vector<std::uint32_t>& prompt);

/// A file that is open for reading. Errors of its calls name the file.
class SavedFile {
 public:
  /// Opens a file and checks its header. Errors: io_error, and those of read_saved_header().
  static Result<SavedFile> open(const std::string& path);

  const SavedHeader& header() const { return header_; }
  Result<std::string> note() const;
  /// Returns the token ids. Their CRC is not checked.
  Result<std::vector<std::uint32_t>> tokens() const;
  /// Replaces a sequence. Errors: those of Session::begin_restore() and restore().
  Status restore(Session& session, std::uint32_t sequence = 0) const;

 private:
  SavedFile(std::string path, OpenFile file, std::uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}

  Status read(std::uint64_t at, std::span<std::byte> into) const;
  /// Returns the error with the file's name.
  Error named(const Error& error) const;

  std::string path_;
  OpenFile file_;
  std::uint64_t size_ = 0;
  SavedHeaderBytes bytes_{};
  SavedHeader header_;
};

}  // namespace qsf
