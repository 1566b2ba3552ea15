// Searches for blocks of formats that have no rule of rounding: GGML's types with grids (IQ1, IQ2, IQ3), and NVFP4.
#pragma once

#include "qsf/formats/search.h"

namespace qsf {

SearchBlock to_iq1_s, to_iq1_m, to_iq2_xxs, to_iq2_xs, to_iq2_s, to_iq3_xxs, to_iq3_s, to_nvfp4, to_nvfp4_f32;

}  // namespace qsf
