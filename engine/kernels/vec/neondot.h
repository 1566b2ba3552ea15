// 64-bit ARM with the dot product extension: NEON's vocabulary, whose dot is then one instruction.
#pragma once

#ifndef __ARM_FEATURE_DOTPROD
#error "built without the dot product extension"
#endif
#include "kernels/vec/neon.h"
