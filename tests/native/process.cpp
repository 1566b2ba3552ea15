#include "native/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "native/temp.h"
#include "tests/support/paths.h"

extern char** environ;

namespace qsf::test {

std::string program(const std::string& name) { return program_dir() + "/" + name; }

Ran run(const std::vector<std::string>& command, const Around& around) {
  const TempDir dir;
  const std::string in = dir / "in", out = dir / "out", err = dir / "err";
  if (std::FILE* file = std::fopen(in.c_str(), "wb")) {
    std::fwrite(around.input.data(), 1, around.input.size(), file);
    std::fclose(file);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
  if (around.out == "-") {
    posix_spawn_file_actions_addclose(&actions, STDOUT_FILENO);
  } else {
    const std::string& to = around.out.empty() ? out : around.out;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, to.c_str(), O_WRONLY | O_CREAT, 0600);
  }
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  std::vector<std::string> arguments = command, variables = around.environment;
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  std::string no_proxy = "no_proxy=127.0.0.1", no_cache = "XDG_CACHE_HOME=" + (dir / "cache");
  envp.push_back(no_proxy.data());
  envp.push_back(no_cache.data());
  for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);  // whatever this process ignores
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  Ran ran;
  pid_t child = 0;
  int status = 0;
  if (::posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), envp.data()) == 0) {
    if (around.meanwhile) around.meanwhile(child);
    if (::waitpid(child, &status, 0) != child) status = 0xff00;
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ran.out = read_text(out);
  ran.err = read_text(err);
  return ran;
}

Ran measured(std::vector<std::string> command, const Around& around) {
  const TempDir dir;
  command.insert(command.begin(), {program("rss_probe"), dir / "peak"});
  Ran ran = run(command, around);
  ran.peak_resident_bytes = std::strtoull(read_text(dir / "peak").c_str(), nullptr, 10);
  return ran;
}

}  // namespace qsf::test
