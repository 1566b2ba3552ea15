// One sentence per CASE. Case 0 is right; format.cmake checks that none of the others compiles.
#include "qsf/base/result.h"

namespace qsf {

Error sentence() {
  constexpr auto kCode = ErrorCode::internal;
#if CASE == 0
  return make_error(kCode, "{} {:x} {:08x} {:.2f} {:.40} {{}}", -1, 2u, 3u, 4.0, "text");
#elif CASE == 1
  return make_error(kCode, "an argument without a place", 1);
#elif CASE == 2
  return make_error(kCode, "a place without an argument {}");
#elif CASE == 3
  return make_error(kCode, "a negative number in hexadecimal {:x}", -1);
#elif CASE == 4
  return make_error(kCode, "a text in hexadecimal {:x}", "text");
#elif CASE == 5
  return make_error(kCode, "an integer behind the point {:.2f}", 1);
#elif CASE == 6
  return make_error(kCode, "a real number cut as a text {:.2}", 1.0);
#elif CASE == 7
  return make_error(kCode, "a place that does not end {", 1);
#elif CASE == 8
  return make_error(kCode, "a place that is not begun }", 1);
#elif CASE == 9
  return make_error(kCode, "what is not known {:d}", 1);
#elif CASE == 10
  return make_error(kCode, "zeros in front of a decimal number {:08}", 1u);
#elif CASE == 11
  return make_error(kCode, "too many digits {:01000x}", 1u);
#elif CASE == 12
  struct Other {};
  return make_error(kCode, "what is no value {}", Other{});
#elif CASE == 13
  const char* const format = "no literal {}";
  return make_error(kCode, format, 1);
#endif
}

}  // namespace qsf
