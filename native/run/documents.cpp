#include "native/run/documents.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "native/cli/input.h"
#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "qsf/base/try.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr std::uint64_t kNotKept = ~std::uint64_t{0};  // the place of a text that is too long

}  // namespace

Result<Documents> Documents::find(const std::string& path, std::size_t longest) {
  Documents documents(path, longest);
  QSF_TRY(documents.find());
  return documents;
}

Documents::Documents(Documents&& other) noexcept
    : path_(std::move(other.path_)),
      longest_(other.longest_),
      file_(std::exchange(other.file_, -1)),
      is_kept_(other.is_kept_),
      kept_(std::move(other.kept_)),
      all_(std::move(other.all_)) {}

Documents::~Documents() {
  if (file_ >= 0 && !path_.empty()) sys::close_file(file_);
}

Error Documents::cannot_read(int number) const {
  return make_error(ErrorCode::io_error, "cannot read {}: {}", path_.empty() ? "standard input" : path_,
                    std::strerror(number));
}

Status Documents::find() {
  file_ = path_.empty() ? sys::kInput : sys::open_input(path_);
  if (file_ < 0) return cannot_read(errno);
  const std::optional<std::uint64_t> begin = sys::place_in(file_);
  is_kept_ = !begin;
  // Texts that are read again need not be read now: without room for a text, a line is only found.
  Lines lines = begin ? Lines(0, file_, *begin) : Lines(longest_, file_);
  std::string line;
  while (true) {
    if (lines.waits() && sys::is_terminal(file_)) show_input_mark(">");
    const std::uint64_t place = lines.place();
    const LineKind kind = lines.next(line);
    if (kind == LineKind::end) break;
    if (kind == LineKind::line && line.empty()) continue;
    if (all_.size() == kMost) {
      return make_error(ErrorCode::context_full,
                        "there are more than {} documents: score parts of them, and sort the scores together", kMost);
    }
    all_.push_back({place, static_cast<std::uint32_t>(lines.count())});
    if (!is_kept_) continue;
    all_.back().place = kind == LineKind::line ? kept_.size() : kNotKept;
    if (kind != LineKind::line) continue;
    if (kept_.size() + line.size() >= kMostBytes) {
      return make_error(ErrorCode::context_full,
                        "there are more than {} bytes of documents that can be read only once: give them as a file",
                        kMostBytes);
    }
    kept_ += line + '\n';
  }
  if (cancelled()) return make_error(ErrorCode::cancelled, "stopped while reading documents");
  return lines.error() == 0 ? Status() : cannot_read(lines.error());
}

Result<LineKind> Documents::read(const Document& document, std::string& text) const {
  if (is_kept_) {
    if (document.place == kNotKept) return LineKind::too_long;
    text = kept_.substr(document.place, kept_.find('\n', document.place) - document.place);
    return LineKind::line;
  }
  Lines lines(longest_, file_, document.place);
  const LineKind kind = lines.next(text);
  if (cancelled()) return make_error(ErrorCode::cancelled, "stopped while reading documents");
  if (lines.error() != 0) return cannot_read(lines.error());
  return kind;
}

}  // namespace qsf::run
