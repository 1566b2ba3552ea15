// Recipes as JSON. docs/reference/recipes.md describes the form.
#pragma once

#include <span>
#include <string_view>

#include "converter/files/json.h"
#include "converter/recipes/recipes.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns the recipe, or bad_input, with `file` and the key, for unknown keys, roles and values.
Result<Recipe> read_recipe(const Json& json, std::string_view file);

/// A file of recipes/, compiled in.
struct RecipeText {
  std::string_view file, text;
};
std::span<const RecipeText> recipe_texts();

}  // namespace qsf::convert
