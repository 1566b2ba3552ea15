// The models that qsf-convert reads, from every place that hosts run models from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "converter/readers/inputs.h"
#include "native/made/remote_files.h"
#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// A model that can be converted.
struct InputModel {
  std::unique_ptr<RemoteFiles> remote;  // if its files are on servers; the model reads them
  convert::LoadedModel model;
  std::vector<std::string> notes;  // sentences on the choice of a file
};

struct InputOptions {
  bool with_tokenizer = true;
  std::string recipe;  // path of a recipe that replaces the compiled-in ones; empty: none
  convert::TernaryLayout ternary = convert::TernaryLayout::automatic;
};

/// Opens the model that `where` names, as locate_model() has it. Errors are those of locate_model, convert::open_model
/// and Source::open.
Result<InputModel> open_input(const std::string& where, const InputOptions& how, const SourceOptions& options = {});

}  // namespace qsf
