// Pickles and archives that mean harm: refused at once, with a sentence, and in little memory.
#include <cstring>
#include <filesystem>

#include "converter/readers/hugging_face/pytorch.h"
#include "converter/support.h"
#include "native/process.h"
#include "support/pickle.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

Bytes pickle_archive(const Bytes& pickle) {
  ZipWriter zip;
  zip.add({.name = "x/data.pkl", .data = pickle});
  zip.add({.name = "x/data/0", .data = Bytes(8)});
  return zip.file();
}

PickleWriter dictionary(const PickleWriter::View& view) {
  PickleWriter out;
  out.raw("}(").text("t").tensor(view).raw("u");
  return out;
}

PickleWriter::View view(std::int64_t n, std::int64_t offset, std::vector<std::int64_t> shape,
                        std::vector<std::int64_t> strides) {
  return {.n = n, .offset = offset, .shape = std::move(shape), .strides = std::move(strides)};
}

/// `n` times the same bytes.
Bytes repeated(std::string_view front, std::string_view bytes, std::size_t n, std::string_view back = ".") {
  Bytes out;
  put_bytes(out, front);
  for (std::size_t i = 0; i < n; ++i) put_bytes(out, bytes);
  put_bytes(out, back);
  return out;
}

struct Hostile {
  const char* name;
  Bytes file;
  const char* part;  // of the sentence
};

std::vector<Hostile> hostile_pickles() {
  std::vector<Hostile> out;
  const auto add = [&](const char* name, const Bytes& pickle, const char* part) {
    out.push_back({name, pickle_archive(pickle), part});
  };
  for (const auto& [module, function] :
       {std::pair{"os", "system"}, std::pair{"builtins", "eval"}, std::pair{"posix", "system"},
        std::pair{"torch", "load"}, std::pair{"torch._utils", "_rebuild_qtensor"},
        std::pair{"torch.storage", "_load_from_bytes"}}) {
    add(function, PickleWriter().global(module, function).raw("(").text("true").raw("tR").stop(),
        "no part of a tensor");
  }
  add("stack global", PickleWriter().text("os").text("system").raw("\x93").stop(), "opcode STACK_GLOBAL");
  add("instance", PickleWriter().raw("(ios\nsystem\n").stop(), "opcode INST");
  add("object", PickleWriter().raw("(").global("collections", "OrderedDict").raw("o").stop(), "opcode OBJ");
  add("new object", PickleWriter().global("collections", "OrderedDict").raw(")\x81").stop(), "opcode NEWOBJ");
  add("extension", PickleWriter().raw("\x82\x01").stop(), "opcode EXT1");
  add("no opcode", PickleWriter().raw("\x01").stop(), "no opcode");
  add("another protocol", PickleWriter().raw("\x80\x04").stop(), "protocol 4");
  add("a storage is called", PickleWriter().global("torch", "FloatStorage").raw(")R").stop(),
      "calls torch.FloatStorage");
  add("a dictionary of values", PickleWriter().global("collections", "OrderedDict").raw("]\x85R").stop(),
      "calls collections.OrderedDict");
  add("a state", PickleWriter().raw("]}b").stop(), "sets the state");
  add("no dictionary", PickleWriter().raw("]").stop(), "other than a dictionary");
  add("no tensor", PickleWriter().raw("}(").text("epoch").number(3).raw("u").stop(), "epoch is no tensor");
  add("no name", PickleWriter().raw("}(").number(3).tensor(view(2, 0, {2}, {1})).raw("u").stop(), "no text");
  add("twice",
      PickleWriter()
          .raw("}(")
          .text("t")
          .tensor(view(2, 0, {2}, {1}))
          .text("t")
          .tensor(view(2, 0, {2}, {1}))
          .raw("u")
          .stop(),
      "there twice");
  add("underflow", PickleWriter().raw("R").stop(), "stack is empty");
  add("no mark", PickleWriter().raw("]e").stop(), "no mark");
  add("below a mark", PickleWriter().raw("](\x85").stop(), "stack is empty");
  add("odd", PickleWriter().raw("}(").number(1).raw("u").stop(), "no value");
  add("in nothing", PickleWriter().raw("N(").number(1).raw("e").stop(), "no list");
  add("memo of nothing", PickleWriter().raw("h\x05").stop(), "memo has nothing");
  add("memo far out", PickleWriter().raw("]r\xff\xff\xff\xff").stop(), "places in its memo");
  add("itself",
      PickleWriter().raw("}q").raw(std::string_view("\0(", 2)).text("t").raw(std::string_view("h\0u", 3)).stop(),
      "t is no tensor");
  add("a long text", PickleWriter().raw("X\xff\xff\xff\x7f").stop(), "bytes in one text");
  add("a long number",
      PickleWriter()
          .raw("\x8a\x09"
               "123456789")
          .stop(),
      "number of 9 bytes");
  add("a long name", repeated("c", "aaaaaaaaaaaaaaaa", 1 << 14), "bytes in one name");
  add("marks", repeated("", "(", 1 << 20), "marks within each other");
  add("lists", repeated("", "]", 1 << 20), "pickle has more than");
  add("memo bomb", repeated("]q", std::string_view("\0h\0h\0\x86q", 7), 1 << 20), "pickle has more than");
  add("dictionaries", repeated("", "}(NNu", 1 << 20), "pickle has more than");
  add(
      "tensors",
      [] {
        PickleWriter tensor;
        tensor.raw("}").tensor(view(2, 0, {2}, {1})).raw("q").raw(std::string_view("\0(", 2));
        Bytes bytes = tensor.stop();
        bytes.pop_back();
        for (std::uint32_t i = 0; i < 1 << 17; ++i) {
          put_bytes(bytes, std::string_view("X\x04\0\0\0", 5));
          put(bytes, i);
          put_bytes(bytes, std::string_view("h\0", 2));
        }
        put_bytes(bytes, "u.");
        return bytes;
      }(),
      "");
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  add("beyond the storage", dictionary(view(2, 0, {3}, {1})).stop(), "passes the end");
  add("an offset beyond", dictionary(view(2, 1, {2}, {1})).stop(), "passes the end");
  add("a huge offset", dictionary(view(2, kHuge, {1}, {1})).stop(), "passes the end");
  add("a huge shape", dictionary(view(2, 0, {kHuge, kHuge}, {kHuge, 1})).stop(), "passes the end");
  add("another size", dictionary(view(3, 0, {2}, {1})).stop(), "another size");
  add("a huge size", dictionary(view(kHuge, 0, {2}, {1})).stop(), "another size");
  add("a negative size", dictionary(view(-2, 0, {2}, {1})).stop(), "no type, key or size");
  add("a negative offset", dictionary(view(2, -1, {2}, {1})).stop(), "make no sense");
  add("a negative stride", dictionary(view(2, 1, {2}, {-1})).stop(), "make no sense");
  add("strides of another shape", dictionary(view(2, 0, {2}, {1, 1})).stop(), "make no sense");
  add("many dimensions",
      dictionary(view(2, 0, std::vector<std::int64_t>(9, 1), std::vector<std::int64_t>(9, 1))).stop(), "make no sense");
  PickleWriter::View elsewhere = view(2, 0, {2}, {1});
  elsewhere.key = "../0";
  add("a storage elsewhere", dictionary(elsewhere).stop(), "not there");
  return out;
}

std::vector<Hostile> hostile_archives() {
  std::vector<Hostile> out;
  const Bytes pickle = dictionary(view(2, 0, {2}, {1})).stop();
  using Entry = ZipWriter::Entry;
  const auto add = [&](const char* name, const Entry& storage, const ZipWriter::End& end, const char* part) {
    ZipWriter zip;
    zip.add({.name = "x/data.pkl", .data = pickle});
    zip.add(storage);
    out.push_back({name, zip.file(end), part});
  };
  const Entry good{.name = "x/data/0", .data = Bytes(8)};
  Entry bad = good;
  bad.method = 8;
  add("compressed", bad, {}, "compressed or encrypted");
  bad = good;
  bad.flags = 1;
  add("encrypted", bad, {}, "compressed or encrypted");
  bad = good;
  bad.size_off = 1 << 30;
  add("a bomb", bad, {}, "pass the archive's end");
  for (const auto& [off, part] : {std::pair{std::uint64_t{1} << 62, "pass the archive's end"},
                                  std::pair{~std::uint64_t{0} - 7, "another size"}}) {
    bad = good;
    bad.in64 = true;
    bad.size_off = off;
    add("a bomb of 64 bits", bad, {}, part);
    bad.size_off = 0;
    bad.header_off = off;
    add("far out", bad, {}, "zip archive");
  }
  bad = good;
  bad.header_off = static_cast<std::uint64_t>(-std::int64_t{40} - static_cast<std::int64_t>(pickle.size()));
  add("the same header", bad, {}, "another name");
  bad = good;
  bad.local_name = "x/data/1";
  add("another name", bad, {}, "another name");
  add("twice", {.name = "x/data.pkl", .data = pickle}, {}, "twice");
  add("two pickles", {.name = "y/data.pkl", .data = pickle}, {}, "one data.pkl");
  add("fewer entries", good, {.n_entries_off = 1}, "too short");
  add("many entries", good, {.in64 = true, .n_entries_off = std::uint64_t{1} << 40}, "entries");
  add("a huge directory", good, {.in64 = true, .size_off = std::uint64_t{1} << 40}, "passes the file's end");
  add("a directory elsewhere", good, {.in64 = true, .begin_off = std::uint64_t{1} << 40}, "passes the file's end");
  add("a shifted directory", good, {.size_off = static_cast<std::uint64_t>(-1), .begin_off = 1}, "fewer entries");
  add("big-endian", {.name = "x/byteorder", .data = Bytes{std::byte{'b'}}}, {}, "big-endian");
  ZipWriter overlap;  // one entry within another
  Bytes inner = ZipWriter().file();
  {
    ZipWriter zip;
    zip.add(good);
    inner = zip.file();
  }
  overlap.add({.name = "x/data.pkl", .data = pickle});
  overlap.add({.name = "x/outer", .data = inner});
  Entry within = good;
  within.header_off = static_cast<std::uint64_t>(-static_cast<std::int64_t>(inner.size()));
  overlap.add(within);
  out.push_back({"within another", overlap.file(), "overlap"});
  ZipWriter none;
  none.add({.name = "x/readme", .data = pickle});
  out.push_back({"no pickle", none.file(), "one data.pkl"});
  return out;
}

std::vector<Hostile> hostile_files() {
  std::vector<Hostile> out = hostile_pickles();
  for (Hostile& hostile : hostile_archives()) out.push_back(std::move(hostile));
  // The same pickles in the older layout, which are refused before any storage is looked for.
  Bytes front;
  put_bytes(front, std::string_view(
                       "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}.", 25));
  const auto older = [&](const Bytes& rest) {
    Bytes file = front;
    file.insert(file.end(), rest.begin(), rest.end());
    return file;
  };
  out.push_back({"system, older", older(PickleWriter().global("os", "system").stop()), "os.system"});
  out.push_back({"a bomb, older", older(repeated("", "]", 1 << 24)), "pickle has more than"});
  const auto listed = [&](std::initializer_list<const char*> keys, std::uint64_t n, std::size_t bytes) {
    PickleWriter::View v = view(2, 0, {2}, {1});
    v.legacy = true;
    Bytes file = older(dictionary(v).stop());
    PickleWriter list;
    list.raw("](");
    for (const char* key : keys) list.text(key);
    const Bytes end = list.raw("e").stop();
    file.insert(file.end(), end.begin(), end.end());
    put(file, n);
    file.resize(file.size() + bytes);
    return file;
  };
  out.push_back({"a huge storage, older", listed({"0"}, std::uint64_t{1} << 62, 8), "pass the file's end"});
  out.push_back({"a short storage, older", listed({"0"}, 2, 4), "pass the file's end"});
  out.push_back({"listed twice, older", listed({"0", "0"}, 2, 8), "listed twice"});
  out.push_back({"of nobody, older", listed({"1"}, 2, 8), "belongs to no tensor"});
  out.push_back({"bytes behind, older", listed({"0"}, 2, 9), "after its last storage"});
  out.push_back({"nothing there, older", listed({}, 2, 0), "after its last storage"});
  return out;
}

TEST(HostilePickles, AreRefusedWithASentence) {
  for (const Hostile& hostile : hostile_files()) {
    SCOPED_TRACE(hostile.name);
    std::vector<convert::LoadedTensor> tensors;
    const Status read = convert::read_pytorch(convert::input_of("x.bin", hostile.file), tensors);
    ASSERT_FALSE(read);
    EXPECT_NE(error_of(read).code, ErrorCode::internal);
    EXPECT_NE(std::strstr(error_of(read).sentence, hostile.part), nullptr) << read.error().sentence;
  }
}

TEST(HostilePickles, TakeLittleMemory) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/llama", folder.path());
  std::filesystem::remove(folder.path("model.safetensors"));
  for (const Hostile& hostile : hostile_files()) {
    SCOPED_TRACE(hostile.name);
    write_bytes(folder.path("pytorch_model.bin"), hostile.file);
    const Ran ran = measured({program("qsf-convert"), folder.path(), folder.path("out.qsf")});
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_TRUE(ran.err.starts_with("qsf-convert: ")) << ran.err;
#if !defined(QSF_SANITIZED) && !defined(_WIN32)  // a sanitizer and wine keep memory of their own beside
    EXPECT_LT(ran.peak_resident_bytes, 64u << 20);
#endif
    EXPECT_FALSE(std::filesystem::exists(folder.path("out.qsf")));
  }
}

}  // namespace
}  // namespace qsf::test
