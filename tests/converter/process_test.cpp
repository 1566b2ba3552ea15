// qsf-convert among files and processes that mean no good: what it writes, what it must not touch, how it ends.
#include "native/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "file/open_file.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

const std::string kQwen = kSource + "/tests/data/qwen2";

Ran qsf_convert(std::vector<std::string> arguments, const Around& around = {}) {
  arguments.insert(arguments.begin(), program("qsf-convert"));
  return run(arguments, around);
}

/// The error that a run ended with, in the form that docs/reference/errors.md states.
void expect(const Ran& ran, const std::string& code, const std::string& part) {
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(ran.err.starts_with("qsf-convert: " + code + ": ")) << ran.err;
  EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find('\n'), ran.err.size() - 1) << ran.err;
}

std::size_t n_files(const Folder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

class Output : public ::testing::Test {
 protected:
  void SetUp() override { out_ = folder_.path("out.qsf"); }
  /// A Hugging Face directory of its own.
  std::string model() {
    copy_folder(kLlama, folder_.path("hf"));
    return folder_.path("hf");
  }
  /// The same weights as GGUF.
  std::string gguf() {
    std::map<std::string, Weights> weights;
    write_bytes(folder_.path("a.gguf"), gguf_of(kLlama, GgmlType::f16, weights).file());
    return folder_.path("a.gguf");
  }

  Folder folder_;
  std::string out_;
};

TEST_F(Output, IsNoneOfTheInputs) {
  const std::string hf = model(), file = gguf();
  fs::create_hard_link(file, folder_.path("other.gguf"));
  fs::create_symlink("hf/model.safetensors", folder_.path("link"));
  for (const auto& [in, out] :
       {std::pair{file, file},
        std::pair{file, folder_.path("../") + fs::path(folder_.path()).filename().string() + "/a.gguf"},
        std::pair{file, folder_.path("other.gguf")}, std::pair{hf, hf + "/model.safetensors"},
        std::pair{hf, folder_.path("link")}, std::pair{hf, hf + "/config.json"},
        std::pair{hf, hf + "/tokenizer.json"}}) {
    const Bytes before = read_bytes(out);
    expect(qsf_convert({in, out, "--quiet"}), "bad_argument", "one of the files that are read");
    EXPECT_EQ(read_bytes(out), before) << out;
  }
  copy_folder(kQwen, folder_.path("qwen"));
  const std::string tokenizer = folder_.path("qwen/tokenizer.json");
  expect(qsf_convert({hf, tokenizer, "--tokenizer", tokenizer}), "bad_argument", "one of the files that are read");
  EXPECT_EQ(read_bytes(tokenizer), read_bytes(kQwen + "/tokenizer.json"));
  copy_folder(kSource + "/tests/data/mistral", folder_.path("sharded"));
  const std::string shard = folder_.path("sharded/model-00002-of-00003.safetensors");
  expect(qsf_convert({folder_.path("sharded"), shard}), "bad_argument", "one of the files that are read");
  EXPECT_EQ(qsf_convert({hf, out_}).code, 0);
}

TEST_F(Output, OfTwoConversionsIsOneOfTheTwo) {
  const Bytes a = convert(kLlama, {}).file, b = convert(kQwen, {}).file;
  const Result<convert::LoadedModel> first = convert::open_model(kLlama), second = convert::open_model(kQwen);
  ASSERT_TRUE(first && second);
  Result<convert::Conversion> one = convert::Conversion::begin(*first, {}, out_);
  Result<convert::Conversion> other = convert::Conversion::begin(*second, {}, out_);
  ASSERT_TRUE(one && other);
  bool one_done = false, other_done = false;
  while (!one_done || !other_done) {  // a step of each in turn
    for (auto& [conversion, done] : {std::pair{&*one, &one_done}, std::pair{&*other, &other_done}}) {
      if (*done) continue;
      const Result<convert::Conversion::Step> step = conversion->step();
      ASSERT_TRUE(step) << step.error().sentence;
      *done = *step == convert::Conversion::Step::done;
      if (*done) {
        EXPECT_EQ(read_bytes(out_), conversion == &*one ? a : b);
      }
    }
  }
  EXPECT_EQ(n_files(folder_), 1u);
}

TEST_F(Output, FollowsNoPlantedLink) {
  write_text(folder_.path("victim"), "precious");
  fs::create_symlink("victim", out_ + ".tmp");
  EXPECT_EQ(qsf_convert({kLlama, out_, "--quiet"}).code, 0);
  EXPECT_EQ(read_bytes(folder_.path("victim")).size(), 8u);
  EXPECT_TRUE(fs::is_symlink(out_ + ".tmp"));
  EXPECT_EQ(n_files(folder_), 3u);
}

TEST_F(Output, MayHaveTheLongestName) {
  const std::string out = folder_.path(std::string(251, 'x') + ".qsf");
  EXPECT_EQ(qsf_convert({kLlama, out, "--quiet"}).code, 0);
  EXPECT_EQ(n_files(folder_), 1u);
}

/// A llama2.c checkpoint of zeros that takes a second to convert and next to no room.
std::string large_checkpoint(const Folder& folder) {
  const std::string path = folder.path("large.bin");
  Bytes header;
  constexpr std::int64_t kDim = 1024, kFfn = 4096, kLayers = 2, kHeads = 8, kVocab = 16000, kLength = 64;
  for (const std::int64_t n : {kDim, kFfn, kLayers, kHeads, kHeads, kVocab, kLength}) {
    put(header, static_cast<std::int32_t>(n));
  }
  write_bytes(path, header);
  const std::int64_t layer = 2 * kDim + 4 * kDim * kDim + 3 * kDim * kFfn;
  const std::int64_t floats = kVocab * kDim + kLayers * layer + kDim + kLength * kDim / kHeads;
  fs::resize_file(path, static_cast<std::uintmax_t>(28 + 4 * floats));
  return path;
}

/// Waits until the folder holds a file that is being written.
bool writing(const Folder& folder) {
  for (int i = 0; i < 5000; ++i) {
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      const std::string name = entry.path().filename().string();
      std::error_code error;
      if (name.ends_with(".tmp") && fs::file_size(entry.path(), error) > 0 && !error) return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST_F(Output, IsRemovedWhenASignalComes) {
  const std::string in = large_checkpoint(folder_);
  write_text(out_, "earlier");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    bool seen = false;
    const Ran ran = qsf_convert({in, out_, "--quiet"}, {.input = {}, .environment = {}, .meanwhile = [&](pid_t child) {
                                                          seen = writing(folder_);
                                                          kill(child, signal);
                                                        }});
    EXPECT_TRUE(seen);
    EXPECT_EQ(ran.code, 128 + signal) << ran.err;
    EXPECT_TRUE(ran.err.starts_with("qsf-convert: cancelled: ")) << ran.err;
    EXPECT_EQ(n_files(folder_), 2u);
    EXPECT_EQ(read_bytes(out_).size(), 7u);
  }
}

TEST_F(Output, IsRemovedWhenTwoSignalsCome) {
  const std::string in = large_checkpoint(folder_);
  write_text(out_, "earlier");
  const Ran ran = qsf_convert({in, out_, "--quiet"}, {.input = {}, .environment = {}, .meanwhile = [&](pid_t child) {
                                                        EXPECT_TRUE(writing(folder_));
                                                        kill(child, SIGINT);
                                                        kill(child, SIGTERM);
                                                      }});
  EXPECT_TRUE(ran.code == 128 + SIGINT || ran.code == 128 + SIGTERM) << ran.code << ran.err;
  EXPECT_EQ(n_files(folder_), 2u);
  EXPECT_EQ(read_bytes(out_).size(), 7u);
}

/// Where the first signal is only noted, in a write that goes on after it, the second one ends the program.
TEST_F(Output, ASecondSignalEndsTheProgramAnywhere) {
  const std::string full = folder_.path("full");
  ASSERT_EQ(::mkfifo(full.c_str(), 0600), 0);
  const int end = ::open(full.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(end, 0);
  const std::string much(4096, 'x');
  while (::write(end, much.data(), much.size()) > 0) {
  }
  const Ran ran = qsf_convert({kLlama, out_}, {.input = {},
                                               .environment = {},
                                               .meanwhile =
                                                   [&](pid_t child) {
                                                     for (int i = 0; i < 5000 && !fs::exists(out_); ++i) {
                                                       std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                                     }
                                                     kill(child, SIGTERM);
                                                     std::this_thread::sleep_for(std::chrono::milliseconds(300));
                                                     kill(child, SIGINT);
                                                     std::this_thread::sleep_for(std::chrono::milliseconds(2000));
                                                     kill(child, SIGKILL);
                                                   },
                                               .out = full});
  ::close(end);
  EXPECT_EQ(ran.code, 128 + SIGINT) << ran.err;
  EXPECT_EQ(n_files(folder_), 2u);
}

TEST_F(Output, NothingIsLeftOfACalibrationThatASignalEnds) {
  write_text(out_, "earlier");
  write_text(folder_.path("text.txt"), "Once upon a time there was a fox.");
  for (const char* name : {"out.qsf", "out.gguf"}) {
    bool seen = false;
    const std::string out = folder_.path(name);
    const Ran ran = qsf_convert({kLlama, out, "--calibration", folder_.path("text.txt"), "--own-tokens", "1000000"},
                                {.input = {}, .environment = {}, .meanwhile = [&](pid_t child) {
                                   for (int i = 0; i < 20000 && !seen; ++i) {
                                     seen = fs::exists(out + ".calibration");
                                     std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                   }
                                   kill(child, SIGTERM);
                                 }});
    EXPECT_TRUE(seen);
    EXPECT_EQ(ran.code, 128 + SIGTERM) << ran.err;
    EXPECT_NE(ran.err.find("cancelled: stopped by signal"), std::string::npos) << ran.err;
    EXPECT_EQ(n_files(folder_), 2u);
  }
  EXPECT_EQ(read_bytes(out_).size(), 7u);
}

TEST_F(Output, SaysWhatAModelLosesByItsTypes) {
  write_text(folder_.path("text.txt"), "Once upon a time there was a fox.");
  const std::string text = folder_.path("text.txt");
  for (const char* name : {"m.qsf", "m.gguf"}) {
    const Ran ran =
        qsf_convert({kLlama, folder_.path(name), "--calibration", text, "--own-tokens", "64", "--quant-type", "q4_0"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const std::size_t at = ran.out.find("expected loss: ");
    ASSERT_NE(at, std::string::npos) << ran.out;
    const double loss = std::strtod(ran.out.c_str() + at + 15, nullptr);
    EXPECT_GT(loss, 0) << ran.out;
    EXPECT_LT(loss, 1) << ran.out;
  }
  const Ran inspected = qsf_convert({"--inspect", folder_.path("m.qsf")});
  const auto file = open_file(read_bytes(folder_.path("m.qsf")));
  ASSERT_TRUE(file);
  for (const LayerEntry& layer : file->layers) {
    EXPECT_GT(layer.importance, 0.0f);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g\n", double{layer.importance});
    EXPECT_NE(inspected.out.find(text.data()), std::string::npos) << inspected.out;
  }
  const Ran mixed = qsf_convert(
      {kLlama, folder_.path("x.gguf"), "--quant-type", "mixed", "--calibration", text, "--own-tokens", "64"});
  ASSERT_EQ(mixed.code, 0) << mixed.err;
  EXPECT_NE(mixed.out.find(" weights of 4."), std::string::npos) << mixed.out;
  EXPECT_EQ(qsf_convert({folder_.path("x.gguf"), folder_.path("x.qsf")}).code, 0);
  EXPECT_EQ(qsf_convert({kLlama, out_, "--quant-type", "mixed"}).code, 2);
}

TEST_F(Output, GoesOnWhenTheSignalIsIgnored) {
  const std::string in = large_checkpoint(folder_);
  const Ran ran = run({"/bin/sh", "-c", "trap '' HUP; exec \"$0\" \"$@\"", program("qsf-convert"), in, out_, "--quiet"},
                      {.input = {}, .environment = {}, .meanwhile = [&](pid_t child) {
                         writing(folder_);
                         kill(child, SIGHUP);
                       }});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(fs::exists(out_));
}

TEST_F(Output, BeyondTheAllowedFileSizeIsAnError) {
  const Ran ran = run({"/bin/sh", "-c", "ulimit -f 100; exec \"$0\" \"$@\"", program("qsf-convert"), kLlama, out_});
  expect(ran, "io_error", "cannot write");
  EXPECT_EQ(n_files(folder_), 0u);
}

#ifndef QSF_SANITIZED  // a sanitizer keeps its own memory beside
TEST_F(Output, NeverHoldsAModelThatTakesMuchMemory) {
  const std::string in = large_checkpoint(folder_);
  const Ran ran = measured({program("qsf-convert"), in, out_, "--quiet", "--quant-type", "8bit"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_GT(ran.peak_resident_bytes, 1u << 20);
  EXPECT_LT(ran.peak_resident_bytes, 24u << 20);  // the input has 200 MB
  const Ran shown = measured({program("qsf-convert"), "--inspect", out_});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_LT(shown.peak_resident_bytes, 24u << 20);  // the file 50 MB
}

#endif

class Changing : public Output {
 protected:
  /// Converts a copy, with `change` made to its weights after some steps.
  Error error_after(const std::function<void(const std::string& weights)>& change) {
    const std::string hf = model();
    const Result<convert::LoadedModel> source = convert::open_model(hf);
    EXPECT_TRUE(source);
    Result<convert::Conversion> conversion = convert::Conversion::begin(*source, {}, out_);
    EXPECT_TRUE(conversion);
    EXPECT_TRUE(conversion->step());
    change(hf + "/model.safetensors");
    for (;;) {
      const Result<convert::Conversion::Step> step = conversion->step();
      if (!step) return step.error();
      if (*step == convert::Conversion::Step::done) return {};
    }
  }
};

TEST_F(Changing, AShorterInputIsAnError) {
  const Error error = error_after([](const std::string& weights) { fs::resize_file(weights, 20000); });
  EXPECT_EQ(error.code, ErrorCode::file_changed);
  EXPECT_NE(std::strstr(error.sentence, "became shorter"), nullptr) << error.sentence;
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(Changing, OtherBytesAreAnError) {
  const Error error = error_after([](const std::string& weights) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Bytes bytes = read_bytes(weights);
    bytes.back() ^= std::byte{1};
    write_bytes(weights, bytes);
  });
  EXPECT_EQ(error.code, ErrorCode::file_changed) << error.sentence;
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(Changing, AnotherFileOfThatNameIsNot) {
  const Error error = error_after([](const std::string& weights) {
    write_text(weights + ".new", "something else");
    fs::rename(weights + ".new", weights);
  });
  EXPECT_EQ(error.code, ErrorCode::none) << error.sentence;
  EXPECT_EQ(read_bytes(out_), convert(model(), {}).file);
}

/// What is no regular file is refused at once: nothing waits for its other end.
TEST_F(Output, IsNotMadeFromWhatIsNoFile) {
  const std::string fifo = folder_.path("fifo"), socket_path = folder_.path("socket");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::string hf = model();
  const auto timed = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "timeout", "20", program("qsf-convert")});
    return run(arguments);
  };
  for (const std::string& path : {fifo, socket_path, std::string("/dev/zero"), std::string("/dev/tty")}) {
    expect(timed({path, out_}), "io_error", "not a regular file");
    expect(timed({"--inspect", path}), "io_error", "not a regular file");
    expect(timed({hf, out_, "--tokenizer", path}), "io_error", "not a regular file");
  }
  expect(timed({hf, out_, "--tokenizer", folder_.path()}), "io_error", "not a regular file");
  expect(timed({"--inspect", folder_.path()}), "io_error", "not a regular file");
  for (const char* part : {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "tokenizer.model"}) {
    copy_folder(kLlama, folder_.path("hf"));
    fs::remove(hf + "/" + part);
    ASSERT_EQ(mkfifo((hf + "/" + part).c_str(), 0600), 0);
    expect(timed({hf, out_}), "io_error", "not a regular file");
    fs::remove(hf + "/" + part);
  }
  copy_folder(kSource + "/tests/data/mistral", folder_.path("sharded"));
  const std::string shard = folder_.path("sharded/model-00002-of-00003.safetensors");
  fs::remove(shard);
  ASSERT_EQ(mkfifo(shard.c_str(), 0600), 0);
  expect(timed({folder_.path("sharded"), out_}), "io_error", "not a regular file");
  EXPECT_FALSE(fs::exists(out_));
  close(listener);
}

TEST_F(Output, ThatCannotBePrintedIsAnError) {
  ASSERT_EQ(qsf_convert({kLlama, out_, "--quiet"}).code, 0);
  const auto shell = [&](const std::string& script) {
    return run({"/bin/sh", "-c", script, program("qsf-convert"), kLlama, out_});
  };
  for (const char* to : {">/dev/full", ">&-"}) {
    expect(shell(std::string("exec \"$0\" --inspect \"$2\" ") + to), "io_error", "cannot write to the standard output");
    expect(shell(std::string("exec \"$0\" \"$1\" \"$2\" ") + to), "io_error", "cannot write to the standard output");
    expect(shell(std::string("exec \"$0\" --help ") + to), "io_error", "cannot write to the standard output");
    expect(shell(std::string("exec \"$0\" --version ") + to), "io_error", "cannot write to the standard output");
    EXPECT_EQ(shell(std::string("exec \"$0\" \"$1\" \"$2\" --quiet ") + to).code, 0);
  }
  // With no descriptor open at all, no file takes the place of one and is written to by mistake.
  const Bytes whole = read_bytes(out_);
  EXPECT_EQ(shell("exec \"$0\" \"$1\" \"$2\" <&- >&- 2>&-").code, 1);
  EXPECT_EQ(read_bytes(out_), whole);
}

TEST_F(Output, OfNamesHoldsNoControlCharacters) {
  const std::string evil =
      "a\x1b[31mb\x07\xc2\x9b"
      "2J\nc";
  std::map<std::string, Weights> weights;
  GgufWriter writer = gguf_of(kLlama, GgmlType::f16, weights);
  writer.text("general.name", evil);
  write_bytes(folder_.path("a.gguf"), writer.file());
  const std::string named = folder_.path("out\x1b[2J.qsf");
  const Ran converted = qsf_convert({folder_.path("a.gguf"), named});
  EXPECT_EQ(converted.code, 0) << converted.err;
  const Ran shown = qsf_convert({"--inspect", named});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("a?[31mb??2J?c"), std::string::npos) << shown.out;
  GgufWriter other;
  other.text("general.architecture", evil);
  write_bytes(folder_.path("b.gguf"), other.file());
  const Ran refused = qsf_convert({folder_.path("b.gguf"), folder_.path("b.qsf")});
  expect(refused, "unsupported", "a?[31mb??2J?c");
  const Ran wrong = qsf_convert({"--frob\x1b[2J"});
  EXPECT_EQ(wrong.code, 2);
  for (const std::string& text : {converted.out, converted.err, shown.out, shown.err, refused.err, wrong.err}) {
    for (const char c : text) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << text;
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
  }
}

TEST_F(Output, OfTheVersion) {
  const Ran ran = qsf_convert({"--version"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with("qsf-convert ")) << ran.out;
  EXPECT_EQ(ran.err, "");
}

}  // namespace
}  // namespace qsf::test
