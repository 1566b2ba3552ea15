#include "native/run/session_file.h"

#include "native/host/saved_file.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf::run {

Result<SessionFile> SessionFile::open(const std::string& path, Session& session, bool converses) {
  SessionFile out{path, {}};
  sys::FileInfo info;
  if (!sys::look(path, info)) {
    QSF_TRY(check_writable(path));
    return out;
  }
  QSF_LET(file, SavedFile::open(path));
  QSF_LET(text, file.note());
  Result<SavedNote> note = SavedNote::read(text);
  if (!note) return make_error(note.error().code, "{:.300}: {}", path, note.error().sentence);
  out.note = std::move(*note);
  const bool is_conversation = !out.note.turns.empty();
  if (converses && !is_conversation && file.header().n_tokens != 0) {
    return make_error(ErrorCode::bad_argument, "{:.300} has a text, which continues without a chat template", path);
  }
  if (!converses && is_conversation) {
    return make_error(ErrorCode::bad_argument, "{:.300} has a conversation, which continues with --chat or --message",
                      path);
  }
  QSF_TRY(check_writable(path));
  QSF_TRY(file.restore(session));
  return out;
}

Status SessionFile::save(Session& session) const { return save_to_file(session, path, note.text()); }

}  // namespace qsf::run
