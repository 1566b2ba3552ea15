// Mistakes on the command line of qsf-run that CLI11 does not find. Each function returns a sentence, or nothing.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/run/options.h"

namespace qsf::run {

inline constexpr std::array<std::string_view, 2> kYesNo{"no", "yes"};

/// Return the names of sources of files, and of formats.
std::vector<std::string_view> source_names();
std::vector<std::string_view> format_names();

std::optional<std::string> reranking_mistake(const Options& options);
/// Reads the options of embeddings.
std::optional<std::string> embedding_mistake(Options& options, const std::string& pooling,
                                             const std::string& normalize);
/// Sets the type of keys and values if options name one.
std::optional<std::string> cache_mistake(Options& options, std::span<const std::string> names);
std::optional<std::string> grammar_mistake(const Options& options);
/// Reads `tokens`, and checks the other options against each other.
std::optional<std::string> mistake(Options& options, const std::string& tokens);

}  // namespace qsf::run
