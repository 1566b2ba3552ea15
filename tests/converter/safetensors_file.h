// A safetensors file taken apart and put together, by code that shares nothing with the converter's.
#pragma once

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/support.h"

namespace qsf::test {

struct StoredTensor {
  std::string type;
  std::vector<std::uint64_t> shape;
  Bytes data;
};
using StoredTensors = std::map<std::string, StoredTensor>;

inline StoredTensors read_tensors(const std::string& path) {
  const Bytes file = read_bytes(path);
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  const char* const text = reinterpret_cast<const char*>(file.data()) + sizeof size;
  const std::byte* const data = file.data() + sizeof size + size;
  StoredTensors out;
  const nlohmann::json header = nlohmann::json::parse(text, text + size);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto offsets = entry["data_offsets"].get<std::vector<std::size_t>>();
    out[name] = {entry["dtype"], entry["shape"].get<std::vector<std::uint64_t>>(),
                 Bytes(data + offsets[0], data + offsets[1])};
  }
  return out;
}

inline void write_tensors(const std::string& path, const StoredTensors& tensors) {
  nlohmann::json header = nlohmann::json::object();
  Bytes data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.type},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
    data.insert(data.end(), tensor.data.begin(), tensor.data.end());
  }
  Bytes file;
  put_text(file, header.dump());
  file.insert(file.end(), data.begin(), data.end());
  write_bytes(path, file);
}

}  // namespace qsf::test
