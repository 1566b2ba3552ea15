// Completion files for shells, made from the option table of a program.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qsf {

inline constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};

/// The words that an option takes, for options with a few.
using Choices = std::map<const CLI::Option*, std::vector<std::string>>;

/// Returns the app's file for one of kShells. Options of type FILE and positional ones take the name of a file.
std::string completion(const CLI::App& app, const Choices& choices, std::string_view shell);

}  // namespace qsf
