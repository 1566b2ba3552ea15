// The manual page of a program, made from its option table.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

namespace qsf {

/// A section of the page, in plain text; a line that begins with a space is shown as it is.
struct ManualSection {
  std::string_view title, text;
};

/// Returns the page in the language of man(7): name, synopsis, description, options by group, then the sections.
std::string manual_page(const CLI::App& app, std::span<const ManualSection> sections);

}  // namespace qsf
