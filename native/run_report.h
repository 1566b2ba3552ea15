// What qsf-run tells besides the text: the plan as a table, measurements, the receipt.
#pragma once

#include <cstdio>
#include <string>

#include "native/run_generate.h"
#include "native/run_options.h"
#include "native/run_perplexity.h"

namespace qsf::run {

/// The memory map and what of the weights stays in memory.
void print_memory_map(std::FILE* to, Host& host);
/// Files, threads and kernels, before anything is generated.
void print_setting(std::FILE* to, const Options& options, Host& host);
void print_speed(std::FILE* to, const Generation& generation, Host& host);

/// JSON of what ran; docs/cli.md describes the fields.
std::string receipt_of(const Options& options, Host& host, const Generation& generation);
std::string receipt_of(const Options& options, Host& host, const Perplexity& perplexity);
/// The figures, a line each.
void print_perplexity(std::FILE* to, const Perplexity& perplexity);

/// Measures prompt and generation three times, and prints the medians.
Status bench(std::FILE* to, const Options& options, Host& host);

}  // namespace qsf::run
