// Saved sequences in the C API, and the positions that sequences keep.
#include "native/capi/qsf_c.h"
#include "native/host/saved_file.h"
#include "native/host/saved_note.h"
#include "qsf/base/try.h"

namespace {

using namespace qsf;
using namespace qsf::c_api;

Status save(QSFEngine& engine, const char* path) {
  QSF_TRY(engine.host->know_hash());
  const SavedNote note{{}, engine.rest};
  return save_to_file(engine.host->session(), path, note.text());
}

/// The messages of a conversation are the caller's own, as those of qsf_chat_generate() are.
Status load(QSFEngine& engine, const char* path) {
  QSF_LET(file, SavedFile::open(path));
  QSF_LET(text, file.note());
  QSF_LET(note, SavedNote::read(text));
  QSF_TRY(engine.host->know_hash());
  QSF_TRY(file.restore(engine.host->session()));
  engine.rest = std::move(note.rest);
  return {};
}

int do_with(QSFEngine* engine, const char* path, Status (*act)(QSFEngine&, const char*)) {
  return call<int>(-1, [&] {
    if (engine == nullptr || path == nullptr) {
      fail(wrong("an engine and a path are needed"));
      return -1;
    }
    if (!is_idle(*engine)) return -1;
    const Status status = act(*engine, path);
    tell(status);
    return status ? 0 : -1;
  });
}

}  // namespace

int qsf_session_save(QSFEngine* engine, const char* path) { return do_with(engine, path, save); }
int qsf_session_load(QSFEngine* engine, const char* path) { return do_with(engine, path, load); }

void qsf_config_set_kv(QSFConfig* config, const char* type) {
  if (config == nullptr) return;
  call([&] { config->kv = type == nullptr ? std::nullopt : std::optional<std::string>(type); });
}

void qsf_config_set_speculate(QSFConfig* config, const char* what) {
  if (config == nullptr) return;
  call([&] { config->speculate = what == nullptr ? "none" : what; });
}

void qsf_config_set_memory_monitor(QSFConfig* config, size_t megabytes) {
  if (config != nullptr) config->least_megabytes = megabytes;
}

void qsf_config_set_kv_policy(QSFConfig* config, const char* policy) {
  if (config == nullptr) return;
  call([&] { config->kv_policy = policy == nullptr ? "all" : policy; });
}
