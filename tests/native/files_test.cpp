// What qsf-run reads and writes: nothing is lost, nothing is left behind, nothing waits for ever.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "native/http_server.h"
#include "native/models.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const TempDir& dir) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir / "")) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Ran run_model(const std::string& model, std::vector<std::string> more, const Around& around = {}) {
  std::vector<std::string> command{program("qsf-run"), model, "--temperature", "0"};
  command.insert(command.end(), more.begin(), more.end());
  return run(command, around);
}

/// Around with standard output elsewhere.
Around into(const std::string& out) { return {.input = "", .environment = {}, .meanwhile = nullptr, .out = out}; }

TEST(Files, TheModelIsNeverWritten) {
  const TempDir dir;
  fs::copy(stories("8bit"), dir / "m.qsf");
  fs::create_symlink("m.qsf", dir / "link");
  fs::create_hard_link(dir / "m.qsf", dir / "hard");
  const std::vector<std::byte> before = read_bytes(dir / "m.qsf");
  for (const char* option : {"--logits", "--receipt"}) {
    for (const char* name : {"m.qsf", "link", "hard", "./m.qsf"}) {
      const Ran ran = run_model(dir / "m.qsf",
                                {"--prompt", "x", "--max-tokens", "1", "--kernel-speeds", "none", option, dir / name});
      EXPECT_EQ(ran.code, 1) << option << name;
      EXPECT_TRUE(ran.err.starts_with("qsf-run: bad_argument: cannot write ")) << ran.err;
      EXPECT_EQ(ran.out, "");
      EXPECT_TRUE(read_bytes(dir / "m.qsf") == before) << option << name;
    }
  }
  const Ran appended =
      run_model(dir / "m.qsf", {"--prompt", "x", "--max-tokens", "1", "--kernel-speeds", "none"}, into(dir / "hard"));
  EXPECT_EQ(appended.code, 1) << appended.err;
  EXPECT_TRUE(read_bytes(dir / "m.qsf") == before);
}

TEST(Files, NeitherIsThePromptNorTheOtherOutput) {
  const TempDir dir;
  write_bytes(dir / "prompt", some_bytes(0));
  const Ran prompt = run_model(stories("8bit"), {"--prompt-file", dir / "prompt", "--receipt", dir / "prompt"});
  EXPECT_EQ(prompt.code, 1) << prompt.err;
  const Ran both = run_model(stories("8bit"), {"--prompt", "x", "--receipt", dir / "o", "--logits", dir / "o"});
  EXPECT_EQ(both.code, 1) << both.err;
  EXPECT_EQ(both.out, "");
  EXPECT_EQ(names_in(dir), std::vector<std::string>{"prompt"});
}

TEST(Files, AnOutputIsThereWholeOrAsItWas) {
  const TempDir dir;
  std::ofstream(dir / "receipt") << "old";
  fs::permissions(dir / "receipt", fs::perms(0640));
  fs::create_symlink("receipt", dir / "link");
  for (const char* option : {"--receipt", "--logits"}) {
    const Ran failed = run_model(stories("8bit"), {"--prompt", "\xff", option, dir / "receipt"});
    EXPECT_EQ(failed.code, 1);
    EXPECT_EQ(read_text(dir / "receipt"), "old") << option;
  }
  EXPECT_EQ(run_model(stories("8bit"), {"--prompt", "x", "--max-tokens", "1", "--receipt", dir / "link"}).code, 0);
  EXPECT_EQ(Json::parse(read_text(dir / "receipt"), nullptr, false).value("ended", ""), "length");
  EXPECT_TRUE(fs::is_symlink(dir / "link"));
  EXPECT_EQ(fs::status(dir / "receipt").permissions(), fs::perms(0640));
  EXPECT_EQ(names_in(dir), (std::vector<std::string>{"link", "receipt"}));
  EXPECT_EQ(run_model(stories("8bit"), {"--prompt", "x", "--max-tokens", "1", "--receipt", "/dev/null"}).code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(Files, ASavedSequenceIsThereWholeOrAsItWas) {
  const TempDir dir;
  const std::vector<std::string> how{"-p", "Once upon a time", "-n", "64", "--ignore-eos", "--session", dir / "s"};
  ASSERT_EQ(run_model(stories("8bit"), how).code, 0);
  const std::vector<std::byte> before = read_bytes(dir / "s");
  // Writing fails after a few KiB, as on a full disk.
  std::vector<std::string> limited{
      "/bin/sh",         "-c",  "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"", program("qsf-run"), stories("8bit"),
      "--kernel-speeds", "none"};
  limited.insert(limited.end(), how.begin(), how.end());
  const Ran full = run(limited);
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_NE(full.err.find("io_error: cannot write"), std::string::npos) << full.err;
  EXPECT_TRUE(read_bytes(dir / "s") == before);
  EXPECT_EQ(names_in(dir), std::vector<std::string>{"s"});
  // Killed while it writes, or right before or after.
  for (int i = 0; i < 3; ++i) {
    const auto kill_it = [&](pid_t pid) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);  // if it does not write at all
      for (bool writes = false; !writes && std::chrono::steady_clock::now() < end;) {
        writes = names_in(dir).size() > 1 || read_bytes(dir / "s") != before;
      }
      ::kill(pid, SIGKILL);
    };
    (void)run_model(stories("8bit"), how, {.input = "", .environment = {}, .meanwhile = kill_it, .out = {}});
    for (const std::string& name : names_in(dir)) {
      if (name != "s") fs::remove(dir / name);
    }
    EXPECT_EQ(run_model(stories("8bit"), {"-p", "", "-n", "1", "--session", dir / "s"}).code, 0);
    write_bytes(dir / "s", before);
  }
}

TEST(Files, AnOutputIsTriedBeforeAnythingIsComputed) {
  const TempDir dir;
  for (const char* option : {"--logits", "--receipt"}) {
    for (const std::string& path : {dir / "no/folder", dir / ""}) {
      const Ran ran = run_model(stories("8bit"), {"--prompt", "x", option, path});
      EXPECT_EQ(ran.code, 1);
      EXPECT_EQ(ran.out, "") << option;
      EXPECT_TRUE(ran.err.starts_with("qsf-run: io_error: cannot write ")) << ran.err;
    }
  }
}

TEST(Files, OutputThatCannotBeWrittenIsAnError) {
  const std::string m = stories("8bit");
  const std::vector<std::vector<std::string>> ways{{m, "--prompt", "x", "--max-tokens", "2"},
                                                   {m, "--memory-map"},
                                                   {m, "--tokenize", "--prompt", "x"},
                                                   {m, "--bench", "--max-tokens", "2"},
                                                   {"--help"},
                                                   {"--version"},
                                                   {"--completion", "bash"}};
  for (const char* to : {"/dev/full", "-"}) {
    for (std::vector<std::string> command : ways) {
      const std::string shown = command.back();
      command.insert(command.begin(), program("qsf-run"));
      const Ran ran = run(command, into(to));
      EXPECT_EQ(ran.code, 1) << to << " " << shown;
      EXPECT_NE(ran.err.find("qsf-run: io_error: cannot write standard output"), std::string::npos) << shown << ran.err;
    }
  }
}

// With standard output closed, the first file that is opened must not be given its number.
TEST(Files, AClosedOutputIsNoFile) {
  const TempDir dir;
  const Ran ran =
      run_model(stories("8bit"), {"--prompt", "x", "--max-tokens", "4", "--receipt", dir / "r", "--logits", dir / "l"},
                into("-"));
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_EQ(names_in(dir), std::vector<std::string>{});
}

TEST(Files, AModelMustBeAFile) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string at = dir / "socket";
  at.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const std::pair<std::string, std::string> cases[] = {
      {dir / "pipe", "a pipe"}, {at, "a socket"}, {"/dev/zero", "a device"}};
  for (const auto& [path, what] : cases) {
    for (const char* source : {"pread", "mmap"}) {
      // Waiting for bytes would end with the code of timeout.
      const Ran ran = run({"/usr/bin/timeout", "20", program("qsf-run"), path, "--prompt", "x", "--source", source});
      EXPECT_EQ(ran.code, 1) << path << ran.err;
      EXPECT_NE(ran.err.find("it is " + what + ", not a regular file"), std::string::npos) << ran.err;
    }
  }
  ::close(socket);
}

TEST(Files, ALongInputIsRefusedInsideTheBudget) {
  const std::string much(40'000'000, 'x');
  const std::vector<std::string> command{program("qsf-run"), stories("8bit"), "--ram-budget", "8"};
  const Ran ran = measured(command, {.input = much, .environment = {}, .meanwhile = nullptr, .out = {}});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(ran.err.starts_with("qsf-run: context_full: standard input has more than ")) << ran.err;
#ifndef QSF_SANITIZED
  EXPECT_LE(ran.peak_resident_bytes, (8u << 20) + 12'000'000);
#endif
  const TempDir dir;
  std::ofstream(dir / "long") << much;
  const Ran file = run_model(stories("8bit"), {"--prompt-file", dir / "long"});
  EXPECT_EQ(file.code, 1) << file.err;
  EXPECT_TRUE(file.err.starts_with("qsf-run: context_full: ")) << file.err;
}

TEST(Files, ControlCharactersDoNotReachTheTerminal) {
  const TempDir dir;
  const std::string name = dir / "a\x1b[31m\xc2\x9b\a.qsf";
  fs::copy(stories("8bit"), name);
  const std::vector<std::string> generating{"--verbose", "--prompt", "x", "--max-tokens", "1"};
  for (const std::vector<std::string>& more :
       {generating, {"--prompt", "x", "--no\x1b"}, {"--kv", "\x1b\a"}, {"--tokens", "\x1b"}}) {
    const Ran ran = run_model(name, more);
    EXPECT_FALSE(ran.err.empty());
    EXPECT_EQ(ran.err.find_first_of("\x1b\a\x9b"), std::string::npos) << ran.err;
  }
  const Ran absent = run_model(name + "\x1b", {"--prompt", "x"});
  EXPECT_EQ(absent.err.find_first_of("\x1b\a"), std::string::npos) << absent.err;
}

// A signal in the middle of a generation ends it; what was made is kept, nothing else is left.
TEST(Files, SignalsLeaveNoTemporary) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    HttpServer server(read_bytes(stories("8bit")));
    server.set_fault([](const HttpRequest& r) { return r.first > 46'000 ? Fault::stall : Fault::none; });
    const TempDir dir;
    const auto meanwhile = [&](pid_t child) {
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (names_in(dir).size() < 2 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ::kill(child, signal);
    };
    const Ran ran =
        run_model(server.url(), {"--prompt", "Once upon a time", "--logits", dir / "logits", "--receipt", dir / "r"},
                  {.input = "", .environment = {}, .meanwhile = meanwhile, .out = {}});
    EXPECT_EQ(ran.code, 128 + signal) << ran.err;
    EXPECT_EQ(names_in(dir), (std::vector<std::string>{"logits", "r"}));
    EXPECT_EQ(Json::parse(read_text(dir / "r"), nullptr, false).value("ended", ""), "cancelled");
  }
}

/// Whether the program catches SIGINT, as Linux states it.
bool catches_interrupts(pid_t child) {
  const std::string status = read_text("/proc/" + std::to_string(child) + "/status");
  const std::size_t at = status.find("SigCgt:");
  return at != status.npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
}

// A named pipe that nobody writes, or reads, is waited for, and a signal ends the waiting.
TEST(Files, SignalsEndTheWaitForTheOtherEndOfAPipe) {
  const TempDir dir;
  const std::string pipe = dir / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(dir / "template") << "{{ messages[0].content }}";
  const auto code_after = [&](std::vector<std::string> options, int signal, const std::string& input = "") {
    options.insert(options.end(), {"-n", "1", "--kernel-speeds", "none"});
    const auto meanwhile = [&](pid_t child) {
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!catches_interrupts(child) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // more often in the wait than before it
      ::kill(child, signal);
      while (::kill(child, 0) == 0 && std::chrono::steady_clock::now() < limit) {
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0)
          return;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      ::kill(child, SIGKILL);
    };
    return run_model(stories("8bit"), options, {.input = input, .environment = {}, .meanwhile = meanwhile, .out = {}});
  };
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const std::vector<std::string>& options :
         std::vector<std::vector<std::string>>{{"--message", "x", "--chat-template", pipe},
                                               {"--message", "x", "--chat-template", dir / "template", "--file", pipe},
                                               {"--prompt-file", pipe},
                                               {"-p", "x", "--json-schema", pipe},
                                               {"-p", "x", "--receipt", pipe}}) {
      const Ran ran = code_after(options, signal);
      EXPECT_EQ(ran.code, 128 + signal) << options[2] << ran.err;
    }
  }
  const Ran ran = code_after({"--chat", "--chat-template", dir / "template"}, SIGTERM, "/file " + pipe + "\n");
  EXPECT_EQ(ran.code, 128 + SIGTERM) << ran.err;
  // What is written later is read.
  const Ran read =
      run({"/bin/bash", "-c", "(sleep 0.1; echo -n Once > \"$2\") & exec \"$0\" \"$1\" --tokenize -f \"$2\"",
           program("qsf-run"), stories("8bit"), pipe});
  EXPECT_EQ(read.out, run({program("qsf-run"), stories("8bit"), "--tokenize", "-p", "Once"}).out) << read.err;
  const Ran written =
      run({"/bin/bash", "-c", "(sleep 0.1; cat \"$2\") & \"$0\" \"$1\" -p x -n 0 --receipt \"$2\"; wait",
           program("qsf-run"), stories("8bit"), pipe});
  EXPECT_TRUE(Json::parse(written.out, nullptr, false).contains("logits_hash")) << written.out << written.err;
}

TEST(Files, AnIgnoredSignalStaysIgnored) {
  HttpServer server(read_bytes(stories("8bit")));
  server.set_fault([](const HttpRequest& r) { return r.first > 46'000 ? Fault::stall : Fault::none; });
  const TempDir dir;
  const auto meanwhile = [&](pid_t child) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (names_in(dir).empty() && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    ::kill(child, SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::kill(child, SIGTERM);
  };
  const Ran ran = run({"/usr/bin/nohup", program("qsf-run"), server.url(), "--prompt", "x", "--receipt", dir / "r"},
                      {.input = "", .environment = {}, .meanwhile = meanwhile, .out = {}});
  EXPECT_EQ(ran.code, 128 + SIGTERM) << ran.err;
}

// qsf-parity catches no signals: the first one ends it.
TEST(Files, ASignalEndsAComparison) {
  const TempDir dir;
  for (const char* name : {"a", "b"}) {
    std::ofstream(dir / name) << "";
    fs::resize_file(dir / name, std::uintmax_t{16} << 30);  // of no bytes on the disk
  }
  for (const int signal : {SIGINT, SIGTERM}) {
    const Ran ran = run({program("qsf-parity"), dir / "a", dir / "b", "--vocabulary", "1024"},
                        {.input = "", .environment = {}, .meanwhile = [&](pid_t child) {
                           std::this_thread::sleep_for(std::chrono::milliseconds(50));
                           ::kill(child, signal);
                         }});
    EXPECT_EQ(ran.code, 128 + signal) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

TEST(Files, ReadingOverHttpIsTold) {
  HttpServer server(read_bytes(stories("8bit")));
  server.set_fault([](const HttpRequest& r) { return r.number > 0 ? Fault::stall : Fault::none; });
  const auto meanwhile = [](pid_t child) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    ::kill(child, SIGTERM);
  };
  const Ran ran = run_model(server.url(), {"--prompt", "Once upon a time", "--verbose"},
                            {.input = "", .environment = {}, .meanwhile = meanwhile, .out = {}});
  EXPECT_EQ(ran.code, 128 + SIGTERM);
  EXPECT_NE(ran.err.find("qsf-run: reading " + server.url() + ": 0."), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace qsf::test
