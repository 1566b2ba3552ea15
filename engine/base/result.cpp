#include "qsf/base/result.h"

namespace qsf {

Error::Error(ErrorCode error, const char* format, const FormatValue* values, FormatKinds kinds) : code(error) {
  format_into(sentence, format, values, kinds);
}

std::string_view error_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::none:
      return "none";
#define QSF_ERROR(name, number, meaning) \
  case ErrorCode::name:                  \
    return #name;
#include "qsf/base/errors.def"
#undef QSF_ERROR
  }
  return "unknown";
}

}  // namespace qsf
