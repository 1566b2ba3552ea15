// qsf-bench --model: prefill and decode of a whole model.
#pragma once

namespace qsf::bench {

/// Reads the command line, measures, and prints JSON. Returns the program's exit code.
int bench_model(int argc, char** argv);

}  // namespace qsf::bench
