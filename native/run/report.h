// Reports of qsf-run other than the text: the plan as a table, measurements, the receipt.
#pragma once

#include <cstdio>
#include <span>
#include <string>

#include "native/run/generate.h"
#include "native/run/options.h"
#include "native/run/perplexity.h"

namespace qsf::run {

/// Prints the memory map and the part of the weights that stays in memory.
void print_memory_map(std::FILE* to, Host& host);
/// Prints the model, the host and the kernels, before anything is generated.
void print_setting(std::FILE* to, const Options& options, Host& host);
/// Prints the time, the speed and the memory of the texts of one prompt together.
void print_speed(std::FILE* to, std::span<const Generation> texts, Host& host);

/// Returns JSON of a run; docs/reference/cli.md describes the fields.
/// `hash` is the model's. Several texts of one prompt are in a list.
std::string receipt_of(const Options& options, Host& host, std::span<const Generation> texts, const std::string& hash);
std::string receipt_of(const Options& options, Host& host, const Perplexity& perplexity, const std::string& hash);
/// Prints the figures, one on each line.
void print_perplexity(std::FILE* to, const Perplexity& perplexity);

/// Measures prompt and generation three times, and prints the medians.
Status bench(std::FILE* to, const Options& options, Host& host);

}  // namespace qsf::run
