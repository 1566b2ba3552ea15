#include "native/made/input_model.h"

#include <utility>

#include "native/made/open_model.h"
#include "native/sources/address.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

Result<convert::LoadedModel> open_remote(const FoundModel& found, const InputOptions& how, RemoteFiles& files) {
  QSF_LET(place, place_at(found.where, found.names, files));
  place.ternary = how.ternary;
  auto local = std::make_shared<convert::LocalFiles>();
  if (!how.recipe.empty()) {
    QSF_LET(recipe, convert::read_recipe_file(how.recipe, *local));
    place.recipe = std::move(recipe);
  }
  QSF_LET(model, convert::open_place(place, how.with_tokenizer));
  model.files = std::move(local);
  return std::move(model);
}

}  // namespace

Result<InputModel> open_input(const std::string& where, const InputOptions& how, const SourceOptions& options) {
  QSF_LET(found, locate_model(where, options, ModelUse::convert));
  InputModel out;
  out.notes = std::move(found.notes);
  if (!is_url(found.where)) {
    QSF_LET(model, convert::open_model(found.where, how.with_tokenizer, how.recipe, how.ternary));
    out.model = std::move(model);
    return out;
  }
  SourceOptions reading = options;
  reading.token = found.token;
  out.remote = std::make_unique<RemoteFiles>(reading, [](convert::Input input) { return input; });
  Result<convert::LoadedModel> model = open_remote(found, how, *out.remote);
  if (!model) return is_hub(where) ? hub_error(model.error(), out.remote->status(), where) : model.error();
  out.model = std::move(*model);
  return out;
}

}  // namespace qsf
