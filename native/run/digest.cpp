#include "native/run/digest.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "native/made/open_model.h"
#include "native/sources/address.h"
#include "native/sources/ring.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr std::size_t kPart = 1 << 20;  // bytes of a request
constexpr std::size_t kParts = 4;       // requests under way

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// The parts of a file on their way, in the order of their bytes.
class Parts {
 public:
  Parts(Source& source, const std::atomic<bool>& cancel) : source_(source), cancel_(cancel), memory_(kParts * kPart) {}

  Result<Sha256Digest> digest() {
    for (std::size_t i = 0; i < kParts; ++i) ask();
    while (!under_way_.empty()) {
      const Part part = under_way_.front();
      while (!has_come_[part.slot]) QSF_TRY(wait());
      sum_.update(bytes_of(part));
      under_way_.pop();
      ask();
    }
    return sum_.digest();
  }

 private:
  struct Part {
    std::uint32_t slot = 0, size = 0;
  };

  std::span<std::byte> bytes_of(const Part& part) { return std::span(memory_).subspan(part.slot * kPart, part.size); }

  /// Asks for the next part, if there is one.
  void ask() {
    if (asked_ >= source_.size()) return;
    const auto slot = static_cast<std::uint32_t>((asked_ / kPart) % kParts);
    const Part part{slot, static_cast<std::uint32_t>(std::min<std::uint64_t>(kPart, source_.size() - asked_))};
    under_way_.push(part);
    has_come_[slot] = false;
    ReadRequest request;
    request.offset = asked_;
    request.size = part.size;
    request.into = bytes_of(part).data();
    request.ticket = slot;
    asked_ += part.size;
    (void)source_.submit(std::span(&request, 1));  // there is room for kParts
  }

  Status wait() {
    constexpr std::chrono::milliseconds kPatience{100};
    std::array<Completion, kParts> done;
    const std::size_t n = source_.reap(done, kPatience);
    for (const Completion& each : std::span(done).first(n)) {
      QSF_TRY(each.status);
      has_come_[each.ticket] = true;
    }
    if (cancel_) return make_error(ErrorCode::cancelled, "stopped while the model's digest was computed");
    return {};
  }

  Source& source_;
  const std::atomic<bool>& cancel_;
  std::vector<std::byte> memory_;
  Ring<Part, kParts> under_way_;
  std::array<bool, kParts> has_come_{};  // by slot
  Sha256 sum_;
  std::uint64_t asked_ = 0;  // bytes
};

}  // namespace

bool is_digest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

Status check_digest(const std::string& model, const std::string& digest, const SourceOptions& options,
                    const std::atomic<bool>& cancel) {
  QSF_LET(located, locate_model(model, options));
  SourceOptions reading = options;
  reading.token = located.token;
  QSF_LET(source, Source::open(located.where, reading));
  Parts parts(source, cancel);
  const Result<Sha256Digest> found = parts.digest();
  source.cancel();  // after an error others are under way, which write to the memory of the parts
  std::array<Completion, kParts> left;
  while (source.under_way() != 0) (void)source.reap(left, std::chrono::milliseconds(100));
  if (!found) return found.error();
  if (lowered(digest) == hex(*found).data()) return {};
  return make_error(ErrorCode::bad_checksum, "{:.200} has the SHA-256 {}, not that of --sha256: it is another file",
                    without_secrets(model), hex(*found).data());
}

}  // namespace qsf::run
