// The documents of --rerank: lines that are found first, and read each time that they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "native/cli/line_editor.h"
#include "qsf/base/result.h"

namespace qsf::run {

/// A document's place in the file, or among the texts that are kept, and its score.
struct Document {
  std::uint64_t place = 0;
  std::uint32_t line = 0;  // from 1
  float score = 0;
};

/// Lines of a file or of standard input. A file that can be read at a place is read again for each text. Only texts of
/// a pipe or a terminal are kept, and they are bounded: the budget has no room for documents.
class Documents {
 public:
  static constexpr std::size_t kMost = 1u << 16;       // documents, of 16 bytes each: 1 MiB
  static constexpr std::size_t kMostBytes = 1u << 20;  // of texts that are kept

  /// Finds the lines that are not empty, of standard input if the path is empty. A line may be longer than `longest`
  /// bytes, but its text is not read. Errors: context_full for more than kMost lines, or more than kMostBytes of a
  /// pipe; io_error; cancelled.
  static Result<Documents> find(const std::string& path, std::size_t longest);
  Documents(Documents&& other) noexcept;
  Documents& operator=(Documents&&) = delete;
  ~Documents();

  /// Returns the documents in the order of their lines, for the caller to change.
  std::vector<Document>& all() { return all_; }
  /// Writes the text of a document and returns `line`, or `too_long`, or `end` if the file has lost it. Errors:
  /// io_error, cancelled.
  Result<LineKind> read(const Document& document, std::string& text) const;

 private:
  Documents(std::string path, std::size_t longest) : path_(std::move(path)), longest_(longest) {}
  Status find();
  Error cannot_read(int number) const;

  std::string path_;
  std::size_t longest_;
  int file_ = -1;
  bool is_kept_ = false;  // whether the texts are in kept_
  std::string kept_;      // each text with a line feed
  std::vector<Document> all_;
};

}  // namespace qsf::run
