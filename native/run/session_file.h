// The file of --session: a sequence, and the conversation that it is of.
#pragma once

#include <string>

#include "native/host/saved_note.h"
#include "qsf/engine.h"

namespace qsf::run {

struct SessionFile {
  std::string path;
  SavedNote note;

  /// Restores the sequence if the file is there. A conversation goes on as a conversation only, and a text as a text:
  /// bad_argument otherwise. Other errors: those of SavedFile and SavedNote, and io_error if save() has no place for
  /// its file.
  static Result<SessionFile> open(const std::string& path, Session& session, bool converses);
  Status save(Session& session) const;
};

}  // namespace qsf::run
