// A sequence as the bytes of a file and back, through pieces of any size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "qsf/base/try.h"
#include "qsf/engine.h"

namespace qsf::test {

struct HowSaved {
  std::uint32_t sequence = 0;
  std::size_t piece = 1000;  // bytes of the host's buffer
  std::string_view note = {};
  std::uint32_t n_tokens = kAllTokens;
};

inline Result<std::vector<std::byte>> saved(Session& session, const HowSaved& how = {}) {
  const auto note = std::as_bytes(std::span(how.note));
  QSF_LET(header, session.begin_save(sum_of_note(note), how.n_tokens, how.sequence));
  std::vector<std::byte> file(header.begin(), header.end());
  file.insert(file.end(), note.begin(), note.end());
  std::vector<std::byte> buffer(how.piece);
  while (true) {
    QSF_LET(n, session.save(buffer));
    file.insert(file.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(n));
    if (n < buffer.size()) return file;
  }
}

/// Hands over the payload once.
inline Result<bool> hand_over(Session& session, std::span<const std::byte> payload, std::size_t piece) {
  for (std::size_t at = 0; at < payload.size(); at += piece) {
    QSF_LET(done, session.restore(payload.subspan(at, std::min(piece, payload.size() - at))));
    if (done || at + piece >= payload.size()) return done;
  }
  return false;
}

inline Status restored(Session& session, std::span<const std::byte> file, const HowSaved& how = {}) {
  const auto header_bytes = file.first(std::min(file.size(), kSavedHeaderSize));
  QSF_TRY(session.begin_restore(header_bytes, file.size(), how.sequence));
  QSF_LET(header, read_saved_header(header_bytes, file.size()));
  const auto payload = file.subspan(static_cast<std::size_t>(header.payload_offset()));
  QSF_LET(early, hand_over(session, payload, how.piece));
  if (early) return make_error(ErrorCode::internal, "it was restored before it came twice");
  QSF_LET(done, hand_over(session, payload, how.piece));
  return done ? Status() : make_error(ErrorCode::internal, "it came twice and is not restored");
}

}  // namespace qsf::test
