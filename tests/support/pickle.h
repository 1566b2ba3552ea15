// Writing pickles and zip archives, from the formats' descriptions; hostile ones too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/gguf.h"

namespace qsf::test {

inline void put_bytes(Bytes& out, std::string_view text) {
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), at, at + text.size());
}

/// Opcodes of protocol 2, one after the other.
class PickleWriter {
 public:
  PickleWriter() { raw("\x80\x02"); }

  PickleWriter& raw(std::string_view bytes) {
    put_bytes(bytes_, bytes);
    return *this;
  }
  PickleWriter& text(std::string_view value) {
    raw("X");
    put(bytes_, static_cast<std::uint32_t>(value.size()));
    return raw(value);
  }
  PickleWriter& global(const std::string& module, const std::string& name) {
    return raw("c" + module + "\n" + name + "\n");
  }
  PickleWriter& number(std::int64_t value) {
    raw(std::string_view("\x8a\x08", 2));
    put(bytes_, value);
    return *this;
  }
  PickleWriter& numbers(const std::vector<std::int64_t>& values) {
    raw("(");
    for (const std::int64_t value : values) number(value);
    return raw("t");
  }
  /// What stands for a storage; `legacy` adds the view that it is not.
  PickleWriter& storage(const std::string& type, std::string_view key, std::int64_t n, bool legacy = false) {
    raw("(").text("storage").global("torch", type).text(key).text("cpu").number(n);
    if (legacy) raw("N");
    return raw("tQ");
  }
  /// A view of a storage.
  struct View {
    std::string type = "FloatStorage";
    std::string key = "0";
    std::int64_t n = 0;  // elements of the storage
    std::int64_t offset = 0;
    std::vector<std::int64_t> shape, strides;
    bool legacy = false;
  };
  PickleWriter& tensor(const View& view) {
    global("torch._utils", "_rebuild_tensor_v2").raw("(");
    storage(view.type, view.key, view.n, view.legacy).number(view.offset).numbers(view.shape).numbers(view.strides);
    return raw("\x89").global("collections", "OrderedDict").raw(")RtR");
  }
  Bytes stop() {
    raw(".");
    return bytes_;
  }

 private:
  Bytes bytes_;
};

/// Entries are stored; what the directory says of one may be made to lie.
class ZipWriter {
 public:
  struct Entry {
    std::string name;
    Bytes data = {};
    std::uint16_t method = 0, flags = 0;
    bool in64 = false;                           // size and place in the 64-bit field
    std::uint32_t alignment = 0;                 // of the data, by a field of padding
    std::uint64_t size_off = 0, header_off = 0;  // added to what the directory says
    std::string local_name = {};                 // another one in front of the data
  };

  void add(const Entry& entry) {
    const std::uint64_t header = bytes_.size();
    const std::string& name = entry.local_name.empty() ? entry.name : entry.local_name;
    std::uint32_t padding = 0;
    while (entry.alignment != 0 && (header + 30 + name.size() + padding) % entry.alignment != 0) ++padding;
    if (padding != 0 && padding < 4) padding += entry.alignment;
    put<std::uint32_t>(bytes_, 0x04034b50);
    bytes_.resize(bytes_.size() + 22);  // sizes and checksum are in the directory
    put(bytes_, static_cast<std::uint16_t>(name.size()));
    put(bytes_, static_cast<std::uint16_t>(padding));
    put_bytes(bytes_, name);
    if (padding != 0) {
      put_bytes(bytes_, "FB");
      put(bytes_, static_cast<std::uint16_t>(padding - 4));
      bytes_.resize(bytes_.size() + padding - 4, std::byte{'Z'});
    }
    bytes_.insert(bytes_.end(), entry.data.begin(), entry.data.end());

    const std::uint64_t size = entry.data.size() + entry.size_off, at = header + entry.header_off;
    put<std::uint32_t>(directory_, 0x02014b50);
    directory_.resize(directory_.size() + 4);
    put(directory_, entry.flags);
    put(directory_, entry.method);
    directory_.resize(directory_.size() + 8);
    for (int i = 0; i < 2; ++i) put(directory_, entry.in64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(size));
    put(directory_, static_cast<std::uint16_t>(entry.name.size()));
    put(directory_, static_cast<std::uint16_t>(entry.in64 ? 28 : 0));
    directory_.resize(directory_.size() + 10);
    put(directory_, entry.in64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(at));
    put_bytes(directory_, entry.name);
    if (entry.in64) {
      put<std::uint16_t>(directory_, 1);
      put<std::uint16_t>(directory_, 24);
      put(directory_, size);
      put(directory_, size);
      put(directory_, at);
    }
    ++n_entries_;
  }

  /// What the end records say, which may be made to lie.
  struct End {
    bool in64 = false;
    std::uint64_t n_entries_off = 0, size_off = 0, begin_off = 0;
    std::string comment = {};
  };
  Bytes file(const End& end) const {
    Bytes out = bytes_;
    const std::uint64_t begin = out.size() + end.begin_off, size = directory_.size() + end.size_off,
                        n = n_entries_ + end.n_entries_off;
    out.insert(out.end(), directory_.begin(), directory_.end());
    if (end.in64) {
      const std::uint64_t at = out.size();
      put<std::uint32_t>(out, 0x06064b50);
      put<std::uint64_t>(out, 44);
      out.resize(out.size() + 12);
      for (const std::uint64_t value : {n, n, size, begin}) put(out, value);
      put<std::uint32_t>(out, 0x07064b50);
      put<std::uint32_t>(out, 0);
      put(out, at);
      put<std::uint32_t>(out, 1);
    }
    put<std::uint32_t>(out, 0x06054b50);
    put<std::uint32_t>(out, 0);
    for (int i = 0; i < 2; ++i) put(out, static_cast<std::uint16_t>(end.in64 ? 0xffff : n));
    put(out, static_cast<std::uint32_t>(end.in64 ? 0xffffffff : size));
    put(out, static_cast<std::uint32_t>(end.in64 ? 0xffffffff : begin));
    put(out, static_cast<std::uint16_t>(end.comment.size()));
    put_bytes(out, end.comment);
    return out;
  }
  Bytes file() const { return file({}); }

 private:
  Bytes bytes_, directory_;
  std::uint64_t n_entries_ = 0;
};

}  // namespace qsf::test
