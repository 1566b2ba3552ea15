// Any bytes as a saved sequence: a sequence that is restored goes on, and nothing may crash.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "qsf/base/bytes.h"
#include "tests/file/small_file.h"
#include "tests/support/saved.h"

namespace qsf::test {

/// An open session of a model with a window, a state and whole attention.
class SavedFuzzer {
 public:
  SavedFuzzer() : file_(model()), memory_(4u << 20) {
    OpenOptions options;
    options.max_seq_len = 48;
    const Result<Session*> opened = open_session(memory_, file_.bytes.size(), options);
    if (!opened) std::abort();
    session = *opened;
    run();
  }

  /// Steps until nothing runs. Returns whether nothing failed.
  bool run() {
    while (true) {
      const Step step = session->step();
      while (const auto r = session->next_request()) {
        std::memcpy(r->into, file_.bytes.data() + r->offset, r->size);
        if (!session->complete(r->ticket)) std::abort();
      }
      if (step == Step::error) return false;
      if (step == Step::ready) return true;
    }
  }

  Session* session = nullptr;

 private:
  static SmallFile model() {
    SmallOptions options;
    options.n_layers = 3;
    options.shape = [](std::uint32_t layer, LayerKind& kind) {
      kind.window = layer == 1 ? 5 : 0;
      if (layer != 0) return;
      kind.mixer = Mixer::short_conv;
      kind.conv_taps = 3;
    };
    return small_file(options);
  }

  SmallFile file_;
  std::vector<std::byte> memory_;
};

/// Restores bytes as they are, then with a header that belongs to the model and CRCs that agree. Returns whether the
/// latter is accepted.
inline bool fuzz_saved(std::span<const std::byte> bytes) {
  static SavedFuzzer fuzzer;
  Session& session = *fuzzer.session;
  const Status as_it_is = restored(session, bytes);
  if (!as_it_is && as_it_is.error().sentence[0] == 0) std::abort();
  if (bytes.size() < kSavedHeaderSize + 4) return false;
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  const Result<std::vector<std::byte>> own = saved(session);
  if (!own) std::abort();
  std::memcpy(file.data(), own->data(), 48);  // magic, version, KV type, model
  store_le(&file[96], std::uint64_t{file.size()});
  const auto note = load_le<std::uint32_t>(&file[68]);
  if (note <= file.size() - kSavedHeaderSize - 4) {
    const auto payload = std::span(file).subspan(kSavedHeaderSize + note);
    store_le(&file[file.size() - 4], crc32(payload.first(payload.size() - 4)));
  }
  store_le(&file[124], crc32(std::span(file).first(124)));
  const Status status = restored(session, file, {.piece = 61});
  if (!status && (status.error().sentence[0] == 0 || status.error().code == ErrorCode::internal)) std::abort();
  if (!status) return false;
  const Result<std::vector<std::byte>> again = saved(session);
  if (!again || !restored(session, *again)) std::abort();
  const std::uint32_t id = 3;
  Prompt prompt;
  prompt.tokens = {&id, 1};
  prompt.max_tokens = 2;
  if (session.start(prompt)) (void)fuzzer.run();
  return true;
}

}  // namespace qsf::test
