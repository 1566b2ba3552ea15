// Completion files for shells, made from the option table.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qsf::run {

inline constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};

/// What options take, for those that take one of a few words.
using Choices = std::map<const CLI::Option*, std::vector<std::string>>;

/// The file for one of kShells. Options of type FILE take a file's name, and so does the one that is positional.
std::string completion(const CLI::App& app, const Choices& choices, std::string_view shell);

}  // namespace qsf::run
