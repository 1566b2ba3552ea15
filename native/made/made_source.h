// The kind of source that gives the bytes of a made file, over a source of the model's own files.
#pragma once

#include <memory>
#include <string>

#include "native/made/made_model.h"
#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// Opens the files of a model, which only one source may have open at a time. SourceOptions::kind is the kind that
/// reads them. Errors are those of Source::open, or file_changed.
Result<Source> open_made(std::shared_ptr<MadeModel> model, const SourceOptions& options);

}  // namespace qsf
