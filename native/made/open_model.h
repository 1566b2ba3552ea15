// The one way in which hosts open models of any kind, from any place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "native/made/hub.h"
#include "native/made/made_model.h"
#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// A model that was found.
struct FoundModel {
  std::string where;                // path, or URL
  std::vector<std::string> names;   // of the files of a folder at a URL, if they are known
  std::string token;                // SourceOptions::token for it
  std::shared_ptr<MadeModel> made;  // null for a .qsf file
  std::string choice;               // of a repository's file, for people; also the first note
  std::vector<std::string> notes;   // sentences on the choices, on the model, and on types that change
};

/// Finds the place of the model that `where` names: a path, an http(s) URL, or hf:OWNER/NAME[/FILE][@REVISION]. Opens
/// nothing. SourceOptions::budget is the budget. Errors are those of find_in_hub.
Result<FoundModel> locate_model(const std::string& where, const SourceOptions& options, ModelUse use = ModelUse::run);

/// Whether the ending .qsf of a URL says that it is a .qsf file, which takes no request to find out.
enum class NamesOfUrls : std::uint8_t { believed, checked };

/// Locates the model and opens it as a made file if it is no .qsf file. Errors are those of locate_model,
/// MadeModel::open and Source::open, or bad_argument for options that a .qsf file does not take.
Result<FoundModel> find_model(const std::string& where, const SourceOptions& options,
                              NamesOfUrls names = NamesOfUrls::believed);

/// Opens a source of a found model.
Result<Source> open_source(const FoundModel& model, const SourceOptions& options);

}  // namespace qsf
