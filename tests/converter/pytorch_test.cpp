// pytorch_model.bin in both layouts: real pickles around made-up storages, the same weights as safetensors, views.
#include "converter/readers/hugging_face/pytorch.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "converter/readers/hugging_face/safetensors.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "qsf/base/half.h"
#include "qsf/formats/format.h"
#include "support/pickle.h"
#include "support/seeded.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;
using convert::LoadedTensor;
using nlohmann::json;

const std::string kPickles = kSource + "/tests/data/pytorch";

json read_json(const std::string& path) {
  const Bytes bytes = read_bytes(path);
  const char* text = reinterpret_cast<const char*>(bytes.data());
  return json::parse(text, text + bytes.size());
}

Bytes text_bytes(std::string_view text) {
  Bytes out;
  put_bytes(out, text);
  return out;
}

/// Rows of one tensor, all at once.
Bytes all_rows(const LoadedTensor& tensor) {
  const auto shape = convert::matrix_shape(tensor.shape);
  EXPECT_TRUE(shape) << tensor.name;
  Bytes out((*shape)[0] * row_bytes(*find_format(tensor.format), (*shape)[1]));
  const Status read = tensor.rows_of(0, (*shape)[0], out);
  EXPECT_TRUE(read) << read.error().sentence;
  return out;
}

std::vector<LoadedTensor> read_all(const Bytes& file) {
  std::vector<LoadedTensor> out;
  const Status read = convert::read_pytorch(convert::input_of("x.bin", file), out);
  EXPECT_TRUE(read) << read.error().sentence;
  return out;
}

/// An archive as torch.save lays it out.
Bytes archive(const Bytes& pickle, const std::vector<std::pair<std::string, Bytes>>& storages, bool in64 = false) {
  ZipWriter zip;
  zip.add({.name = "model/data.pkl", .data = pickle, .flags = 0x0808, .in64 = in64, .alignment = 64});
  zip.add({.name = "model/byteorder", .data = text_bytes("little")});
  for (const auto& [key, bytes] : storages) {
    zip.add({.name = "model/data/" + key, .data = bytes, .flags = 0x0808, .in64 = in64, .alignment = 64});
  }
  zip.add({.name = "model/version", .data = text_bytes("3\n")});
  return zip.file({.in64 = in64});
}

/// The four pickles of the older layout, then what follows them.
Bytes legacy(const Bytes& pickle, const std::vector<std::pair<std::string, Bytes>>& storages, std::uint64_t element,
             bool little = true) {
  Bytes out;
  put_bytes(out, std::string_view("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21));
  const Bytes machine = PickleWriter().raw("}(").text("little_endian").raw(little ? "\x88" : "\x89").raw("u").stop();
  PickleWriter keys;
  keys.raw("](");
  for (const auto& [key, bytes] : storages) keys.text(key);
  const Bytes list = keys.raw("e").stop();
  for (const Bytes& part : {machine, pickle, list}) out.insert(out.end(), part.begin(), part.end());
  for (const auto& [key, bytes] : storages) {
    put(out, bytes.size() / element);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

/// What torch.save wrote of a GPT-2, with storages of seeded bytes; tensors.json was made by Python's own pickle
/// module.
class RealPickles : public testing::Test {
 protected:
  void SetUp() override {
    facts_ = read_json(kPickles + "/tensors.json");
    Random random(7);
    for (const json& fact : facts_["tensors"]) {
      Bytes& bytes = storages_[fact["key"]];
      if (!bytes.empty()) continue;
      bytes.resize(4 * fact["elements"].get<std::size_t>());
      for (std::size_t i = 0; i < bytes.size(); i += 4) {
        const float value = random.symmetric();
        std::memcpy(bytes.data() + i, &value, 4);
      }
      legacy_[fact["legacy_key"]] = bytes;
    }
  }
  void expect_tensors(const Bytes& file) {
    const std::vector<LoadedTensor> tensors = read_all(file);
    ASSERT_EQ(tensors.size(), facts_["tensors"].size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const json& fact = facts_["tensors"][i];
      EXPECT_EQ(tensors[i].name, fact["name"].get<std::string>());
      EXPECT_EQ(tensors[i].shape, fact["shape"].get<std::vector<std::uint64_t>>());
      EXPECT_EQ(tensors[i].format, FormatId::f32);
      EXPECT_EQ(all_rows(tensors[i]), storages_[fact["key"]]) << tensors[i].name;
    }
  }

  json facts_;
  std::map<std::string, Bytes> storages_, legacy_;
};

TEST_F(RealPickles, InAnArchive) {
  const std::vector<std::pair<std::string, Bytes>> storages(storages_.begin(), storages_.end());
  for (const bool in64 : {false, true}) expect_tensors(archive(read_bytes(kPickles + "/data.pkl"), storages, in64));
}

TEST_F(RealPickles, InTheOlderLayout) {
  Bytes file = read_bytes(kPickles + "/legacy.front");
  for (const std::string key : facts_["legacy_order"]) {
    const Bytes& bytes = legacy_.at(key);
    put(file, bytes.size() / 4);
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  expect_tensors(file);
}

TEST(PyTorch, BothPicklesOfAModelEqualItsSafetensors) {
  const std::string gpt2 = kShared + "/fixtures/gpt2";
  if (!fs::exists(gpt2)) GTEST_SKIP() << "the extra data in ../shared/data is not here";
  std::vector<LoadedTensor> expected;
  const Bytes bytes = read_bytes(gpt2 + "/model.safetensors");
  ASSERT_TRUE(convert::read_safetensors(convert::input_of("x", bytes), expected));
  for (const char* name : {"/pytorch_model.bin", "/pytorch_model.legacy.bin"}) {
    const Bytes file = read_bytes(gpt2 + name);
    std::map<std::string, LoadedTensor> tensors;
    for (LoadedTensor& tensor : read_all(file)) tensors[tensor.name] = std::move(tensor);
    EXPECT_EQ(tensors.size(), expected.size() + 1);
    for (const LoadedTensor& tensor : expected) {
      EXPECT_EQ(tensors.at(tensor.name).shape, tensor.shape) << tensor.name;
      EXPECT_EQ(all_rows(tensors.at(tensor.name)), all_rows(tensor)) << tensor.name;
    }
    EXPECT_EQ(all_rows(tensors.at("lm_head.weight")), all_rows(tensors.at("transformer.wte.weight")));
  }
}

/// A directory's safetensors as one state dictionary of each file.
struct Saved {
  PickleWriter pickle;
  std::vector<std::pair<std::string, Bytes>> storages;
  std::uint64_t element = 0;

  explicit Saved(const std::string& file, bool older) {
    static const std::map<std::string, std::pair<std::string, std::uint64_t>> types{
        {"F32", {"FloatStorage", 4}}, {"F16", {"HalfStorage", 2}}, {"BF16", {"BFloat16Storage", 2}}};
    const Bytes bytes = read_bytes(file);
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), 8);
    const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
    const json header = json::parse(text, text + size);
    pickle.global("collections", "OrderedDict").raw(")R(");
    for (const auto& [name, tensor] : header.items()) {
      if (name == "__metadata__") continue;
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(8 + size);
      const std::string key = std::to_string(storages.size());
      storages.emplace_back(key, Bytes(begin + tensor["data_offsets"][0], begin + tensor["data_offsets"][1]));
      const auto& [type, width] = types.at(tensor["dtype"]);
      element = width;
      const auto shape = tensor["shape"].get<std::vector<std::int64_t>>();
      std::vector<std::int64_t> strides(shape.size(), 1);
      for (std::size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
      pickle.text(name).tensor({.type = type,
                                .key = key,
                                .n = static_cast<std::int64_t>(storages.back().second.size() / width),
                                .shape = shape,
                                .strides = strides,
                                .legacy = older});
    }
    // The versions of modules, as an attribute of the dictionary.
    pickle.raw("u}").text("_metadata").raw("}sb");
  }
};

TEST(PyTorch, ADirectoryGivesTheSameWeightsAsItsSafetensors) {
  for (const char* name : {"llama", "mistral", "gpt2"}) {  // one file, several, matrices stored turned
    const std::string from = kSource + "/tests/data/" + name;
    const Written expected = convert(from, {FormatId::f32, Compression::none, 0});
    for (const bool older : {false, true}) {
      const Folder folder;
      copy_folder(from, folder.path());
      for (const auto& entry : fs::directory_iterator(from)) {
        std::string file = entry.path().filename().string();
        const bool index = file.ends_with(".index.json");
        if (!file.ends_with(".safetensors") && !index) continue;
        fs::remove(folder.path(file));
        if (index) {
          json map = read_json(entry.path().string());
          for (json& shard : map["weight_map"])
            shard = "pytorch_" + fs::path(std::string(shard)).stem().string() + ".bin";
          write_text(folder.path("pytorch_model.bin.index.json"), map.dump());
          continue;
        }
        Saved saved(entry.path().string(), older);
        const Bytes pickle = saved.pickle.stop();
        write_bytes(folder.path("pytorch_" + entry.path().stem().string() + ".bin"),
                    older ? legacy(pickle, saved.storages, saved.element) : archive(pickle, saved.storages));
      }
      const Written file = convert(folder.path(), {FormatId::f32, Compression::none, 0});
      ASSERT_EQ(file.weights.size(), expected.weights.size());
      for (const auto& [key, weights] : expected.weights) EXPECT_EQ(file.weights.at(key).values, weights.values);
    }
  }
}

/// One tensor "t" over storages of 24 floats 0, 1, 2, …
Bytes view_of(const PickleWriter::View& view) {
  Bytes storage;
  for (int i = 0; i < 24; ++i) put(storage, static_cast<float>(i));
  const Bytes pickle = PickleWriter().raw("}(").text("t").tensor(view).raw("u").stop();
  return view.legacy ? legacy(pickle, {{"0", storage}}, 4) : archive(pickle, {{"0", storage}});
}

TEST(PyTorch, ViewsAreReadAsTheyAreSeen) {
  for (const bool older : {false, true}) {
    for (const PickleWriter::View& view : {
             PickleWriter::View{.n = 24, .offset = 0, .shape = {4, 6}, .strides = {6, 1}},
             PickleWriter::View{.n = 24, .offset = 6, .shape = {3, 6}, .strides = {6, 1}},
             PickleWriter::View{.n = 24, .offset = 0, .shape = {6, 4}, .strides = {1, 6}},
             PickleWriter::View{.n = 24, .offset = 4, .shape = {4, 5}, .strides = {1, 4}},
             PickleWriter::View{.n = 24, .offset = 23, .shape = {1, 1}, .strides = {99, 7}},
             PickleWriter::View{.n = 24, .offset = 2, .shape = {5}, .strides = {1}},
         }) {
      PickleWriter::View asked = view;
      asked.legacy = older;
      const Bytes file = view_of(asked);
      const std::vector<LoadedTensor> tensors = read_all(file);
      ASSERT_EQ(tensors.size(), 1u);
      Bytes expected;
      const bool vector = view.shape.size() == 1;
      for (std::int64_t r = 0; r < (vector ? 1 : view.shape[0]); ++r) {
        for (std::int64_t c = 0; c < view.shape.back(); ++c) {
          put(expected, static_cast<float>(view.offset + (vector ? 0 : r * view.strides[0]) + c * view.strides.back()));
        }
      }
      EXPECT_EQ(all_rows(tensors[0]), expected);
    }
  }
}

TEST(PyTorch, TensorsMayShareAStorage) {
  Bytes storage;
  for (int i = 0; i < 24; ++i) put(storage, static_cast<float>(i));
  for (const bool older : {false, true}) {
    const PickleWriter::View whole{.n = 24, .shape = {4, 6}, .strides = {6, 1}, .legacy = older};
    PickleWriter::View part = whole;
    part.offset = 12;
    part.shape = {2, 6};
    const Bytes pickle =
        PickleWriter().raw("}(").text("a").tensor(whole).text("b").tensor(whole).text("c").tensor(part).raw("u").stop();
    const Bytes file = older ? legacy(pickle, {{"0", storage}}, 4) : archive(pickle, {{"0", storage}});
    const std::vector<LoadedTensor> tensors = read_all(file);
    ASSERT_EQ(tensors.size(), 3u);
    EXPECT_EQ(all_rows(tensors[0]), storage);
    EXPECT_EQ(all_rows(tensors[1]), storage);
    EXPECT_EQ(all_rows(tensors[2]), Bytes(storage.begin() + 48, storage.end()));
  }
}

TEST(PyTorch, ParametersAndWholeNumbers) {
  Bytes storage;
  for (const std::int64_t value :
       {std::int64_t{3}, std::int64_t{-5}, std::int64_t{1} << 40, (std::int64_t{1} << 24) + 1}) {
    put(storage, value);
  }
  const PickleWriter::View small{.type = "LongStorage", .n = 4, .shape = {3}, .strides = {1}};
  PickleWriter::View large = small;
  large.offset = 1;
  const Bytes pickle = PickleWriter()
                           .raw("}(")
                           .text("a")
                           .global("torch._utils", "_rebuild_parameter")
                           .raw("(")
                           .tensor(small)
                           .raw("\x89}tR")
                           .text("b")
                           .tensor(large)
                           .raw("u")
                           .stop();
  const Bytes file = archive(pickle, {{"0", storage}});
  const std::vector<LoadedTensor> tensors = read_all(file);
  ASSERT_EQ(tensors.size(), 2u);
  Bytes expected;
  for (const float value : {3.0f, -5.0f, 0x1p40f}) put(expected, value);
  EXPECT_EQ(all_rows(tensors[0]), expected);
  Bytes row(12);
  const Status read = tensors[1].rows_of(0, 1, row);  // 2^24 + 1 is no float
  ASSERT_FALSE(read);
  EXPECT_NE(std::strstr(error_of(read).sentence, "I64"), nullptr) << read.error().sentence;
}

TEST(PyTorch, OtherViewsAreRefusedByName) {
  for (const PickleWriter::View& view : {
           PickleWriter::View{.n = 24, .shape = {4, 6}, .strides = {0, 1}},
           PickleWriter::View{.n = 24, .shape = {2, 6}, .strides = {12, 1}},
           PickleWriter::View{.n = 24, .shape = {12}, .strides = {2}},
           PickleWriter::View{.n = 24, .shape = {2, 3, 4}, .strides = {1, 2, 6}},
       }) {
    const Bytes file = view_of(view);
    std::vector<LoadedTensor> out;
    const Status read = convert::read_pytorch(convert::input_of("x.bin", file), out);
    ASSERT_FALSE(read);
    EXPECT_EQ(error_of(read).code, ErrorCode::unsupported);
    EXPECT_NE(std::strstr(error_of(read).sentence, "tensor t is a view"), nullptr) << read.error().sentence;
  }
}

TEST(PyTorch, EveryCutIsAnError) {
  const PickleWriter::View view{.n = 24, .shape = {4, 6}, .strides = {6, 1}};
  PickleWriter::View older = view;
  older.legacy = true;
  for (const Bytes& file : {view_of(view), view_of(older)}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      std::vector<LoadedTensor> out;
      const Status read = convert::read_pytorch(convert::input_of("x.bin", std::span(file).first(size)), out);
      ASSERT_FALSE(read) << size;
      EXPECT_NE(error_of(read).code, ErrorCode::internal);
    }
  }
}

}  // namespace
}  // namespace qsf::test
