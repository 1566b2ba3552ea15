#include "base/result.h"

#include <cstdarg>
#include <cstdio>

namespace qsf {

std::string_view error_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::none:
      return "none";
#define QSF_ERROR(name, number, meaning) \
  case ErrorCode::name:                  \
    return #name;
#include "base/errors.def"
#undef QSF_ERROR
  }
  return "unknown";
}

namespace {

/// Takes the last character off if its bytes are not all there.
void drop_cut_character(char* text, std::size_t size) {
  std::size_t lead = size;
  while (lead > 0 && size - lead < 3 && (static_cast<unsigned char>(text[lead - 1]) & 0xc0) == 0x80) --lead;
  if (lead == 0) return;
  const auto first = static_cast<unsigned char>(text[lead - 1]);
  const std::size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  if (size - (lead - 1) < whole) text[lead - 1] = 0;
}

}  // namespace

Error make_error(ErrorCode code, const char* format, ...) {
  Error error;
  error.code = code;
  std::va_list args;
  va_start(args, format);
  const int length = std::vsnprintf(error.sentence, sizeof error.sentence, format, args);
  va_end(args);
  if (length >= static_cast<int>(sizeof error.sentence)) {
    drop_cut_character(error.sentence, sizeof error.sentence - 1);
  }
  return error;
}

}  // namespace qsf
