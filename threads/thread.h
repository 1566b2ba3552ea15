// A thread that the system may refuse.
#pragma once

#include <cstdint>
#include <thread>

namespace qsf {

/// Every thread of this project is a Thread. start() reports a refusal of the system, for lack of threads or memory;
/// std::thread would throw, which ends the program.
class Thread {
 public:
  using Handle = std::thread::native_handle_type;

  Thread() = default;
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Runs (object->*kBody)() on a new thread. Returns false if the system refuses one. Must not be called again before
  /// join().
  template <auto kBody, class T>
  [[nodiscard]] bool start(T* object) {
    return begin(
        [](void* at) -> void* {
          (static_cast<T*>(at)->*kBody)();
          return nullptr;
        },
        object);
  }
  /// Whether a thread was started and not joined. Must be called by the thread that joins.
  bool started() const { return started_; }
  /// Returns the handle of the thread, which must be started.
  Handle handle() const { return handle_; }
  /// Waits until the body has returned. Does nothing if no thread was started.
  void join();

  /// Returns the number of threads that the system has refused this process.
  static std::uint32_t refused();

 private:
  bool begin(void* (*body)(void* context), void* context);

  Handle handle_{};
  bool started_ = false;
};

}  // namespace qsf
