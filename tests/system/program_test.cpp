// Signals that end a program: the first is told, the second ends it wherever it is.
#include "system/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>

#include "native/temp.h"
#include "system/file.h"
#include "system/unfinished.h"

namespace qsf {
namespace {

int told[2];  // a pipe: a byte when the child begins and whenever a signal was told

void tell() { (void)!::write(told[1], "", 1); }

/// A child that waits for ever once it has begun.
class Child {
 public:
  explicit Child(void (*body)()) {
    EXPECT_EQ(::pipe(told), 0);
    id_ = ::fork();
    if (id_ == 0) {
      ::alarm(30);  // so that a program that does not end fails a test instead of holding it up
      body();
      tell();
      while (true) ::pause();
    }
    EXPECT_TRUE(wait_told());
  }
  ~Child() {
    for (const int end : told) ::close(end);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const { ::kill(id_, signal); }
  static bool wait_told() {
    char byte;
    return ::read(told[0], &byte, 1) == 1;
  }
  /// What a shell would give.
  int wait() const {
    int status = 0;
    ::waitpid(id_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t id_;
};

void note(int) { tell(); }
void take(int) {
  sys::take_stop();
  tell();
}

TEST(Stops, TheSecondEndsTheProgram) {
  for (const bool resume : {false, true}) {
    for (const auto& [first, second] : {std::pair(SIGINT, SIGINT), std::pair(SIGTERM, SIGINT),
                                        std::pair(SIGHUP, SIGTERM), std::pair(SIGINT, SIGHUP)}) {
      const Child child(resume ? +[] { sys::catch_stops(note, true); } : +[] { sys::catch_stops(note, false); });
      child.send(first);
      EXPECT_TRUE(child.wait_told());
      child.send(second);
      EXPECT_EQ(child.wait(), sys::exit_code_of(second));
    }
  }
}

TEST(Stops, OneThatWasTakenIsForgotten) {
  const Child child([] { sys::catch_stops(take, true); });
  for (int i = 0; i < 3; ++i) {
    child.send(SIGINT);
    EXPECT_TRUE(child.wait_told());
  }
  child.send(SIGKILL);
  EXPECT_EQ(child.wait(), 128 + SIGKILL);
}

TEST(Stops, ReleasedTheyEndTheProgramAsEver) {
  const Child child([] {
    sys::catch_stops(note, true);
    sys::release_stops();
  });
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 128 + SIGTERM);
}

std::string folder;
std::string path_of(int i) { return folder + "/" + std::to_string(i); }

/// A file that is there.
sys::Unfinished made(int i) {
  sys::close_file(sys::create_file(path_of(i)));
  return sys::Unfinished(path_of(i));
}

TEST(Unfinished, GoesWithItsObjectUnlessItIsKept) {
  const test::TempDir dir;
  folder = dir / "";
  {
    sys::Unfinished gone = made(0), kept = made(1), moved = std::move(gone);
    EXPECT_EQ(moved.path(), path_of(0));
    kept.keep();
    EXPECT_TRUE(std::filesystem::exists(path_of(0)));
    sys::Unfinished none;
    EXPECT_EQ(none.path(), "");
  }
  EXPECT_FALSE(std::filesystem::exists(path_of(0)));
  EXPECT_TRUE(std::filesystem::exists(path_of(1)));
}

TEST(Unfinished, GoesWhereTheProgramIsEndedAtOnce) {
  const test::TempDir dir;
  folder = dir / "";
  const Child child([] {
    static sys::Unfinished first = made(0), kept = made(1), third = made(2);
    kept.keep();
    for (int i = 3; i < 30; ++i) made(i);  // names come and go
    static sys::Unfinished last = std::move(third);
    sys::catch_stops(note, true);
  });
  child.send(SIGTERM);
  EXPECT_TRUE(child.wait_told());
  EXPECT_TRUE(std::filesystem::exists(path_of(0)));
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 128 + SIGTERM);
  for (const int i : {0, 1, 2}) EXPECT_EQ(std::filesystem::exists(path_of(i)), i == 1) << i;
}

}  // namespace
}  // namespace qsf
