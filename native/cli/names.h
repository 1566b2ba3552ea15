// Lists of names that a command line takes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace qsf {

template <class Names, class Name>
bool contains(const Names& names, const Name& name) {
  return std::ranges::find(names, name) != std::ranges::end(names);
}

/// "a, b, c"
template <class Names>
std::string joined(const Names& names, std::string_view between = ", ") {
  std::string out;
  for (const auto& name : names) out.append(out.empty() ? "" : between).append(name);
  return out;
}

}  // namespace qsf
