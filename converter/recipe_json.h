// Recipes as JSON; docs/recipes.md describes the form.
#pragma once

#include <span>
#include <string_view>

#include "converter/json.h"
#include "converter/recipes.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// bad_input, naming `file` and the key, for keys, roles and values that there are not.
Result<Recipe> read_recipe(const Json& json, std::string_view file);

/// The files of recipes/, compiled in.
struct RecipeText {
  std::string_view file, text;
};
std::span<const RecipeText> recipe_texts();

}  // namespace qsf::convert
