// A GGUF model that is divided over several files.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>

#include "converter/readers/gguf/gguf.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kCount = "split.count", kNumber = "split.no", kTensors = "split.tensors.count";
constexpr std::uint32_t kMaxParts = 1000;       // numbers have five digits
constexpr std::uint64_t kMaxTensors = 1 << 16;  // of all parts

using Ending = std::array<char, 21>;

/// Returns the ending of the name of part `number`, from 0.
Ending part_ending(std::uint32_t number, std::uint32_t count) {
  Ending out{};
  std::snprintf(out.data(), out.size(), "-%05u-of-%05u.gguf", (number + 1) % 100000, count % 100000);
  return out;
}

/// Returns the name of that part in the folder of the file `name`, which may be any part.
std::string part_name(const std::string& name, std::uint32_t number, std::uint32_t count) {
  const std::size_t ending = Ending().size() - 1;
  return name.substr(0, name.size() - std::min(name.size(), ending)) + part_ending(number, count).data();
}

}  // namespace

Status join_gguf_parts(const ModelLocation& place, Gguf& gguf) {
  if (!gguf.values.contains(kCount)) return {};
  const std::string& own_name = place.file->name;
  const std::uint32_t count = gguf.u32(kCount).value_or(0), own = gguf.u32(kNumber).value_or(0);
  if (count == 1 && own == 0) return {};
  if (count == 0 || count > kMaxParts || own >= count) {
    return make_error(ErrorCode::bad_input, "{:.100}: split.count is {} and split.no {}", own_name, count, own);
  }
  if (part_name(own_name, own, count) != own_name) {
    return make_error(ErrorCode::unsupported,
                      "{:.100} is part {} of {} parts, but its name does not end in {}: the others cannot be found",
                      own_name, own + 1, count, part_ending(own, count).data());
  }
  std::vector<LoadedTensor> tensors, own_tensors = std::move(gguf.tensors);
  std::map<std::string, std::uint32_t> part_of;  // by the tensor's name
  for (std::uint32_t number = 0; number < count; ++number) {
    Gguf part;
    if (number != own) {
      const std::string name = part_name(own_name, number, count);
      QSF_LET(file, place.folder.find(name));
      if (!file) return make_error(ErrorCode::io_error, "{:.100}, one of {} parts, is not there", name, count);
      Result<Gguf> opened = read_gguf(*file, place.ternary);
      if (!opened) return make_error(opened.error().code, "{:.100}: {}", name, opened.error().sentence);
      Gguf read = std::move(*opened);
      const std::uint32_t says = read.u32(kNumber).value_or(count);
      if (read.u32(kCount) == count && says != number && says < count) {
        return make_error(ErrorCode::bad_input, "{:.100} says that it is part {} of {}, which is {:.100}", name,
                          says + 1, count, part_name(own_name, says, count));
      }
      if (read.u32(kCount) != count || says != number) {
        return make_error(ErrorCode::bad_input, "{:.100} does not say that it is part {} of {}", name, number + 1,
                          count);
      }
      part = std::move(read);
    }
    std::vector<LoadedTensor>& more = number == own ? own_tensors : part.tensors;
    if (more.size() > kMaxTensors - tensors.size()) {
      return make_error(ErrorCode::unsupported, "GGUF: the parts have more than {} tensors", kMaxTensors);
    }
    for (const LoadedTensor& tensor : more) {
      const auto [known, is_new] = part_of.emplace(tensor.name, number);
      if (is_new || known->second == number) continue;  // twice in one part: refused with all files' doubles
      return make_error(ErrorCode::bad_input, "tensor {:.80} is in {:.100} and in {:.100}", tensor.name,
                        part_name(own_name, known->second, count), part_name(own_name, number, count));
    }
    std::move(more.begin(), more.end(), std::back_inserter(tensors));
    if (number == 0 && own != 0) gguf = std::move(part);
  }
  gguf.tensors = std::move(tensors);
  const std::optional<std::uint32_t> n_tensors = gguf.u32(kTensors);
  if (!n_tensors || *n_tensors == gguf.tensors.size()) return {};
  return make_error(ErrorCode::bad_input, "GGUF: the {} parts have {} tensors, and split.tensors.count is {}", count,
                    gguf.tensors.size(), *n_tensors);
}

}  // namespace qsf::convert
