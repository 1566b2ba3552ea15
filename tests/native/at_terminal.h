// Programs at terminals.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

extern char** environ;

namespace qsf::test {

/// A program at a terminal of its own, which takes no commands unless it is of another kind than "dumb".
class AtTerminal {
 public:
  explicit AtTerminal(std::vector<std::string> command, const char* kind = "dumb") {
    ::setenv("TERM", kind, 1);
    terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal_ < 0 || ::grantpt(terminal_) != 0 || ::unlockpt(terminal_) != 0) return;
    const std::string name = ::ptsname(terminal_);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int file : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions, file, name.c_str(), O_RDWR, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> argv;
    for (std::string& argument : command) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (::posix_spawn(&child_, argv[0], &actions, &attributes, argv.data(), environ) != 0) child_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  ~AtTerminal() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    if (terminal_ >= 0) ::close(terminal_);
  }
  AtTerminal(const AtTerminal&) = delete;
  AtTerminal& operator=(const AtTerminal&) = delete;

  /// Waits until the program edits lines itself. The system keeps 4,095 bytes of a line that is typed before.
  void wait_until_it_edits() const {
    termios settings{};
    for (int tries = 0; tries < 60'000; ++tries) {
      if (::tcgetattr(terminal_, &settings) == 0 && (settings.c_lflag & ICANON) == 0) return;
      ::usleep(1000);
    }
    ADD_FAILURE() << "the program does not edit lines";
  }

  void type(const std::string& text) const {
    EXPECT_EQ(::write(terminal_, text.data(), text.size()), std::ssize(text));
  }

  /// Reads until the words are shown after those of the last call, and returns what was shown in between. Ends the
  /// program if the words do not come, so that no other thread waits for it to read.
  std::string wait_for(const std::string& words) {
    std::size_t at;
    while ((at = shown_.find(words, std::max(seen_, searched_))) == std::string::npos) {
      searched_ = shown_.size() - std::min(shown_.size(), words.size());
      if (!read_some()) {
        ADD_FAILURE() << "no '" << words << "' in: " << shown_.substr(seen_);
        if (child_ > 0) ::kill(child_, SIGKILL);
        searched_ = seen_;
        return {};
      }
    }
    const std::string since = shown_.substr(seen_, at - seen_);
    searched_ = seen_ = at + words.size();
    return since;
  }

  /// Waits until something more is shown.
  void wait_for_more() { EXPECT_TRUE(read_some()) << shown_; }

  /// Stops the program where it is, and lets it go on.
  void pause() const { ::kill(child_, SIGSTOP); }
  void go_on() const { ::kill(child_, SIGCONT); }

  /// Everything up to its end.
  int exit_code() {
    while (read_some()) {
    }
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& shown() const { return shown_; }

 private:
  /// False after a minute without output, and at the end of the program.
  bool read_some() {
    pollfd ready{terminal_, POLLIN, 0};
    char buffer[4096];
    if (::poll(&ready, 1, 60'000) <= 0) return false;
    const ssize_t n = ::read(terminal_, buffer, sizeof buffer);
    if (n <= 0) return false;
    shown_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string shown_;
  std::size_t seen_ = 0;
  std::size_t searched_ = 0;
};

}  // namespace qsf::test
