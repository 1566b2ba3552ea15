// Conversions between UTF-8 and the UTF-16 of Windows.
#pragma once

#include <string>
#include <string_view>

namespace qsf::sys {

std::wstring wide(std::string_view text);
std::string narrow(std::wstring_view text);
/// Sets errno to the equivalent of GetLastError() and returns -1.
int fail_as_windows();

}  // namespace qsf::sys
