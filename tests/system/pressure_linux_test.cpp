// Memory that a made-up system states: the machine's, and that of control groups.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "system/memory.h"

namespace qsf {
namespace {

namespace fs = std::filesystem;

class MadeUpSystem : public ::testing::Test {
 protected:
  MadeUpSystem() {
    root_ = (fs::temp_directory_path() / ("qsf-system-" + std::to_string(std::random_device()()))).string();
    write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\n");
  }
  ~MadeUpSystem() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  static std::string pressure(const std::string& number) {
    return "some avg10=90.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=" + number +
           " avg60=0.00 avg300=0.00 total=1\n";
  }

  std::string root_;
};

constexpr std::uint64_t kNone = ~std::uint64_t{0};

TEST_F(MadeUpSystem, RoomIsTheLeastOfMachineAndGroups) {
  EXPECT_EQ(memory_room(root_), 4000u * 1024);
  write("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(memory_room(root_), 4000u * 1024);
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/b/memory.current", "900000\n");
  EXPECT_EQ(memory_room(root_), 4000u * 1024);
  write("/sys/fs/cgroup/a/memory.max", "1000000\n");
  write("/sys/fs/cgroup/a/memory.current", "950000\n");
  EXPECT_EQ(memory_room(root_), 50000u);
  write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 20000\nactive_file 10000\n");
  EXPECT_EQ(memory_room(root_), 80000u);
  write("/sys/fs/cgroup/a/memory.current", "2000000\n");
  EXPECT_EQ(memory_room(root_), 0u);
}

TEST_F(MadeUpSystem, HostileNumbersLimitNothing) {
  for (const char* text : {"", "MemAvailable:\n", "MemAvailable: x kB\n", "MemAvailable: 99999999999999999999999 kB\n",
                           "MemAvailable: 18446744073709551614 kB\n", "Mem"}) {
    write("/proc/meminfo", text);
    EXPECT_EQ(memory_room(root_), kNone) << text;
  }
  write("/proc/meminfo", std::string(100000, 'M') + "\nMemAvailable: 7 kB\n");
  EXPECT_EQ(memory_room(root_), 7u * 1024);
  for (const std::string& text : {std::string("0::"), std::string("::::\n"), std::string(9000, ':'), std::string("0\n"),
                                  std::string("0::/../../..\n"), std::string("5:cpu:/a\n")}) {
    write("/proc/self/cgroup", text);
    EXPECT_EQ(memory_room(root_), 7u * 1024) << text;
    EXPECT_EQ(memory_pressure(root_), std::nullopt);
  }
}

TEST_F(MadeUpSystem, PressureIsThatOfTheGroupOrElseOfTheMachine) {
  EXPECT_EQ(memory_pressure(root_), std::nullopt);
  write("/proc/pressure/memory", pressure("3.50"));
  EXPECT_EQ(memory_pressure(root_), 3.5);
  write("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(memory_pressure(root_), 3.5);
  write("/sys/fs/cgroup/a/memory.pressure", pressure("8.00"));
  EXPECT_EQ(memory_pressure(root_), 8.0);
  write("/sys/fs/cgroup/a/b/memory.pressure", pressure("9.25"));
  EXPECT_EQ(memory_pressure(root_), 9.25);
  write("/sys/fs/cgroup/a/b/memory.pressure", pressure("x"));
  EXPECT_EQ(memory_pressure(root_), 8.0);
  write("/sys/fs/cgroup/a/memory.pressure", std::string(100000, 'f'));
  EXPECT_EQ(memory_pressure(root_), 3.5);
  // Groups of the first version state none.
  write("/proc/self/cgroup", "4:memory:/a/b\n");
  write("/sys/fs/cgroup/memory/a/b/memory.pressure", pressure("50.00"));
  EXPECT_EQ(memory_pressure(root_), 3.5);
}

}  // namespace
}  // namespace qsf
