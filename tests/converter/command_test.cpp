// qsf-convert as a user types it.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "converter/support.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

struct Outcome {
  int status = -1;
  std::string text;  // stdout and stderr
};

Outcome run(const std::string& arguments) {
  const std::string command = program_dir() + "/qsf-convert " + arguments + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  Outcome out;
  if (!pipe) return out;
  for (char buffer[4096]; const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe);) out.text.append(buffer, n);
  const int status = pclose(pipe);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

void expect(const Outcome& outcome, int status, const std::string& part) {
  EXPECT_EQ(outcome.status, status) << outcome.text;
  EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
}

TEST(Command, ConvertsAndInspects) {
  const Folder folder;
  const std::string out = folder.path("llama.qsf");
  expect(run(kLlama + " " + out + " --quant-type 4bit --compress lz4hc"), 0, "bits");
  const Outcome shown = run("--inspect " + out);
  expect(shown, 0, "all checksums agree");
  for (const char* part : {"llama", "4bit", "ffn_down", "norm.epsilon", "TENS", "SEGS", "TOKN", "tiles"}) {
    EXPECT_NE(shown.text.find(part), std::string::npos) << part;
  }
  const Outcome checked = run("--inspect " + out + " --quiet");
  EXPECT_EQ(checked.status, 0);
  EXPECT_EQ(checked.text, "");
}

// DeepSeek-R1's distilled Qwens have such files: config.json has the end token of Qwen as begin token.
TEST(Command, TheBeginTokenIsTheOneThatTheTokenizerAdds) {
  const Folder folder;
  const std::string model = folder.path("m"), out = folder.path("m.qsf");
  std::filesystem::copy(kLlama, model, std::filesystem::copy_options::recursive);
  const auto edit = [&](const char* name, const auto& change) {
    std::ifstream from(model + "/" + name);
    convert::Json json = convert::Json::parse(from);
    change(json);
    write_text(model + "/" + name, json.dump());
  };
  const auto expect_begin = [&](const char* ids) {
    expect(run(model + " " + out + " --quiet"), 0, "");
    expect(run("--inspect " + out), 0, std::string("bos, eos, pad   ") + ids);
  };
  for (const char* name : {"config.json", "generation_config.json"}) {
    edit(name, [](convert::Json& json) { json["bos_token_id"] = 9; });
  }
  expect_begin("9, 0, ");
  edit("tokenizer_config.json", [](convert::Json& json) { json["add_bos_token"] = true; });
  expect_begin("0, 0, ");  // the bos_token of tokenizer_config.json
  edit("tokenizer.json", [](convert::Json& json) {
    convert::Json& added = json["post_processor"];
    const convert::Json begin{{"SpecialToken", {{"id", "x"}, {"type_id", 0}}}};
    added["single"].insert(added["single"].begin(), begin);
    added["special_tokens"]["x"] = {{"id", "x"}, {"ids", {7}}, {"tokens", {"x"}}};
  });
  expect_begin("7, 0, ");
}

TEST(Command, TellsWhichHeadAndFinalNormThereAre) {
  struct Case {
    const char* model;
    const char* head;
    const char* norm;
  };
  for (const auto& [model, head, norm] :
       {Case{"llama", "its own", "f32"}, Case{"qwen2", "tied to the embedding", "f16"}, Case{"bert", "none", "none"},
        Case{"gemma-embedding", "none", "f32"}}) {
    const Folder folder;
    const std::string out = folder.path("x.qsf");
    expect(run(kSource + "/tests/data/" + model + " " + out), 0, "bits");
    const Outcome shown = run("--inspect " + out);
    EXPECT_NE(shown.text.find(std::string("output head        ") + head + "\n"), std::string::npos) << model;
    EXPECT_NE(shown.text.find(std::string("final norm         ") + norm + "\n"), std::string::npos) << model;
  }
}

TEST(Command, QuietSaysNothing) {
  const Folder folder;
  const Outcome outcome = run(kLlama + " " + folder.path("x.qsf") + " --quiet");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text, "");
}

TEST(Command, TakesARecipe) {
  const Folder folder;
  const std::string recipe = folder.path("recipe.json"), out = folder.path("x.qsf");
  write_text(recipe, R"({"name": "my own", "layer": {"residual": "parallel"}})");
  expect(run(kLlama + " " + out + " --recipe " + recipe), 0, "bits");
  const Outcome shown = run("--inspect " + out);
  expect(shown, 0, "my own");
  expect(shown, 0, "LAYR");
  write_text(recipe, R"({"name": "my own", "layer": {"residual": "perpendicular"}})");
  expect(run(kLlama + " " + out + " --recipe " + recipe), 1, "must be one of sequential, parallel");
  expect(run(kLlama + " " + out + " --recipe " + folder.path("none.json")), 1, "none.json");
}

/// How many tensors of a role have a type, by the tables of the file.
std::size_t count(const Written& written, Role role, const char* type) {
  return static_cast<std::size_t>(std::ranges::count_if(written.tables.tensors, [&](const TensorEntry& tensor) {
    return tensor.role == role && tensor.format == find_format(std::string_view(type))->id;
  }));
}

TEST(Command, TypesOfSingleRoles) {
  const Folder folder;
  const std::string out = folder.path("x.qsf");
  const std::string own = " --tensor-type token_embd=q6_k --tensor-type ffn_down=q4_0";
  expect(run(kLlama + " " + out + " --quant-type q8_0" + own), 0, "bits");
  const Written written = read_written(out);
  EXPECT_EQ(count(written, Role::token_embd, "q6_k"), 1u);
  EXPECT_EQ(count(written, Role::ffn_down, "q4_0"), 3u);
  EXPECT_EQ(count(written, Role::ffn_up, "q8_0"), 3u);
  EXPECT_EQ(count(written, Role::head, "q8_0"), 1u);

  write_text(folder.path("text.txt"), "Once upon a time there was a fox.");
  const std::string size = " --calibration " + folder.path("text.txt") + " --own-tokens 64 --target-bpw ";
  const Outcome chosen = run(kLlama + " " + out + size + "6 --tensor-type token_embd=f16 --tensor-type head=f16");
  expect(chosen, 0, " weights of ");
  EXPECT_EQ(chosen.text.find("token_embd"), std::string::npos) << chosen.text;  // it was no choice
  const Written fixed = read_written(out);
  EXPECT_EQ(count(fixed, Role::token_embd, "f16"), 1u);
  EXPECT_EQ(count(fixed, Role::head, "f16"), 1u);
  double bits = 0, weights = 0;
  for (const TensorEntry& tensor : fixed.tables.tensors) {
    const auto n = static_cast<double>(std::uint64_t{tensor.rows} * tensor.cols);
    weights += n;
    bits +=
        8.0 * static_cast<double>(tensor_bytes(*find_format(tensor.format), tensor.layout, tensor.rows, tensor.cols));
  }
  EXPECT_LE(bits / weights, 6.0);
  expect(run(kLlama + " " + out + size + "2 --tensor-type token_embd=f32"), 1, "with a type of their own take");
}

TEST(Command, RefusesACalibrationByNoTextBeforeTheWork) {
  const Folder folder;
  const std::string text = folder.path("imatrix.dat"), out = folder.path("x.qsf");
  write_text(text, "blk.0\xFF");
  write_text(out + ".calibration", "left");  // which is refused as soon as the text is right
  const std::string convert = kLlama + " " + out + " --calibration " + text;
  expect(run(convert), 1, "imatrix.dat is neither a text in UTF-8 (byte 5 is 0xff) nor a GGUF file of llama-imatrix");
  std::string twos = "a";
  while (twos.size() < (2u << 20)) twos += "\u00e9";
  write_text(text, twos);  // the part that is read ends within a character
  expect(run(convert), 1, ".calibration exists");
  twos.resize((1u << 20) - 3);
  write_text(text, twos + "\u00e9\xC3");
  expect(run(convert), 1, "(byte 1048575 is 0xc3)");
}

// Moments, losses of layers, searches and descents are shared out over threads; no byte tells over how many.
TEST(Command, WritesTheSameCalibratedBytesWhateverThreadsThereAre) {
  const Folder folder;
  write_text(folder.path("text.txt"), "Once upon a time there was a fox.");
  const std::string calibrated = " --calibration " + folder.path("text.txt") + " --own-tokens 64 --quant-type ";
  for (const std::string type : {"q3_k", "iq4_xs"}) {
    std::vector<Bytes> written;
    for (const std::string threads : {"1", "2", "5"}) {
      const std::string out = folder.path(threads + ".qsf");
      expect(run(kLlama + " " + out + calibrated + type + " --threads " + threads), 0, "bits");
      written.push_back(read_bytes(out));
    }
    EXPECT_EQ(written[0], written[1]) << type;
    EXPECT_EQ(written[0], written[2]) << type;
  }
}

TEST(Command, KeepsLossesForOtherSizes) {
  const Folder folder;
  const std::string out = folder.path("x.qsf"), kept = folder.path("losses.json");
  write_text(folder.path("text.txt"), "Once upon a time there was a fox.");
  write_text(folder.path("other.txt"), "Once upon a time there was a cat.");
  std::string size = " --own-tokens 64";  // measuring the matrices of attention alone
  for (const char* type : {"token_embd=q8_0", "head=q8_0", "ffn_gate=q4_0", "ffn_up=q4_0", "ffn_down=q4_0"}) {
    size += std::string(" --tensor-type ") + type;
  }
  size += " --target-bpw ";
  const std::string with = " --losses " + kept;
  const auto convert = [&](const std::string& text, const std::string& more) {
    return run(kLlama + " " + out + " --calibration " + folder.path(text) + size + more);
  };
  expect(convert("text.txt", "6"), 0, " weights of ");
  const Bytes six = read_bytes(out);
  expect(convert("text.txt", "5.5"), 0, " weights of ");
  const Bytes smaller = read_bytes(out);
  EXPECT_NE(smaller, six);
  expect(convert("text.txt", "5.5" + with), 0, " weights of ");
  EXPECT_EQ(read_bytes(out), smaller);
  const Bytes losses = read_bytes(kept);
  expect(convert("text.txt", "6" + with), 0, " weights of ");
  EXPECT_EQ(read_bytes(out), six);
  EXPECT_EQ(read_bytes(kept), losses);
  expect(convert("other.txt", "6" + with), 1, "another model");
  write_text(kept, "{}");
  expect(convert("text.txt", "6" + with), 1, "no file of losses");
  EXPECT_EQ(read_bytes(out), six);
}

TEST(Command, RefusesTypesOfWhatIsNotThere) {
  const Folder folder;
  const std::string out = folder.path("x.qsf");
  for (const auto& [wish, sentence] : {std::pair{"embedding=q4_0", "embedding is no matrix"},
                                       {"attn_norm=q4_0", "attn_norm is no matrix"},
                                       {"router=q4_0", "router is no matrix"},
                                       {"ffn_up=q4", "q4 is no type of ffn_up"},
                                       {"ffn_up=", " is no type of ffn_up"},
                                       {"ffn_up", " is no type of ffn_up"},
                                       {"expert_up=q4_0", "the model has no expert_up"}}) {
    expect(run(kLlama + " " + out + " --tensor-type " + wish), 1, sentence);
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST(Command, WrongUsage) {
  expect(run(""), 2, "IN and OUT.qsf");
  expect(run(kLlama), 2, "OUT.qsf is missing");
  expect(run(kLlama + " -"), 2, "standard output");
  EXPECT_FALSE(std::filesystem::exists("-"));
  expect(run(kLlama + " http://u:word@host/x.qsf"), 2, "OUT is a path, and http://***@host/x.qsf is an address");
  expect(run(kLlama + " x.qsf http://u:word@host/y"), 2, "not expected: http://***@host/y");
  expect(run(kLlama + " x.qsf --quant-type ftp://u:word@host/y"), 2, "ftp://***@host/y");
  expect(run(kLlama + " x.qsf --quant-type 5bit"), 2, "5bit");
  expect(run(kLlama + " x.qsf --compress gzip"), 2, "gzip");
  expect(run(kLlama + " x.qsf more"), 2, "more");
  expect(run(kLlama + " x.qsf --losses x.json"), 2, "--losses keeps");
  expect(run(kLlama + " x.qsf --losses x.qsf --calibration x.txt --target-bpw 4"), 2, "two files");
  expect(run(kLlama + " x.qsf --own-tokens 1"), 2, "--own-tokens requires --calibration");
  expect(run(kLlama + " x.qsf --quant-type q4_0 --calibration x.txt --target-bpw 4"), 2, "--quant-type is mixed, or");
  expect(run("--frobnicate"), 2, "--frobnicate");
  for (const char* more : {" b.qsf", " --quiet --search", " --threads 2", " --compress lz4", " --quant-type q4_0"}) {
    expect(run(std::string("--inspect a.qsf") + more), 2, "--inspect takes one file and nothing else");
  }
  expect(run("--help"), 0, "--quant-type");
}

TEST(Command, MissingAndForeignFiles) {
  const Folder folder;
  const std::string out = folder.path("x.qsf");
  expect(run(folder.path("missing") + " " + out), 1, "there is no file or directory");
  expect(run(folder.path() + " " + out), 1, "no config.json");
  write_text(folder.path("a.gguf"), "hello");
  expect(run(folder.path() + " " + out), 1, "to read a.gguf there, name this file");
  std::filesystem::remove(folder.path("a.gguf"));
  write_text(folder.path("config.json"), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  expect(run(folder.path() + " " + out), 1, "config.json is a pointer of Git LFS");
  expect(run(folder.path("config.json") + " " + out), 1, "config.json is a pointer of Git LFS");
  std::filesystem::remove(folder.path("config.json"));
  write_text(folder.path("foreign"), "hello");
  expect(run(folder.path("foreign") + " " + out), 1, "of no kind that can be read");
  expect(run("--inspect " + folder.path("foreign")), 1, "too few");
  expect(run("--inspect " + folder.path("missing")), 1, "cannot open");
  expect(run(kLlama + " " + out + " --tokenizer " + folder.path("missing")), 1, "cannot open");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Command, UnwritableOutput) {
  const Folder folder;
  expect(run(kLlama + " " + folder.path("nowhere/x.qsf")), 1, "cannot write");
  expect(run(kLlama + " " + folder.path()), 1, "not a regular file");
  expect(run(kLlama + " /dev/full"), 1, "not a regular file");
}

TEST(Command, InspectFindsEveryDamagedByteOfTheTablesAndSegments) {
  const Folder folder;
  const std::string out = folder.path("llama.qsf");
  ASSERT_EQ(run(kLlama + " " + out + " --quiet").status, 0);
  const Written written = read_written(out);
  std::vector<std::uint64_t> places{0, 5, 20, 97, 101, 110, written.tables.header.layer_index_offset + 20};
  for (const SectionEntry& section : written.tables.sections) places.push_back(section.offset + section.size / 2);
  for (const SegmentEntry& segment : written.tables.segments)
    places.push_back(segment.offset + segment.stored_size / 2);
  for (const std::uint64_t place : places) {
    Bytes damaged = written.file;
    damaged[place] ^= std::byte{4};
    write_bytes(folder.path("damaged.qsf"), damaged);
    std::FILE* sink = std::fopen("/dev/null", "w");
    const Status status = convert::inspect(convert::input_of("damaged.qsf", damaged), sink);
    std::fclose(sink);
    ASSERT_FALSE(status) << place;
    EXPECT_NE(error_of(status).sentence[0], 0);
  }
  expect(run("--inspect " + folder.path("damaged.qsf")), 1, "checksum");
  const Outcome quiet = run("--quiet --inspect " + folder.path("damaged.qsf"));
  expect(quiet, 1, "checksum");
  EXPECT_EQ(std::ranges::count(quiet.text, '\n'), 1) << quiet.text;
}

}  // namespace
}  // namespace qsf::test
