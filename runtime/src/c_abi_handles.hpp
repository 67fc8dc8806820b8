// The numbers that the C interface gives out for its objects. A handle is never a pointer, so that
// one that is stale, foreign or invented is found out without reading what it points to.
// Thread-safe.
//
//   bits 56..63 kind of object, 32..55 generation of the place, 0..31 place in the table
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace attnjit::c_abi {

// Readers and a writer who is let in: a reader that comes after it waits until it has been there.
// Satisfies SharedMutex as far as the standard locks use it.
class PatientMutex {
 public:
  void lock_shared();
  void unlock_shared() { mutex_.unlock_shared(); }
  void lock();
  void unlock();

 private:
  std::shared_mutex mutex_;
  std::mutex gate_;                        // held by the writer, and passed by readers after it
  std::atomic<bool> writer_waits_{false};  // readers look at the gate
};

// An object in use; while it is held, the object is neither destroyed nor, if `Lock` is exclusive,
// used by anyone else.
template <typename Object, template <typename> typename Lock>
struct ObjectUse {
  Lock<PatientMutex> lock;
  Object* object = nullptr;

  Object& operator*() const { return *object; }
  Object* operator->() const { return object; }
};

[[noreturn]] void fail_on_handle(std::string_view name, std::uint64_t handle);
[[noreturn]] void fail_on_full_table();

// `kind`: 1 to 255, another for each table, so that a plan is not taken for a kernel.
template <typename Object, std::uint8_t kind>
class HandleTable {
 public:
  std::uint64_t add(std::unique_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t place = take_place();
    Slot& slot = slot_at(place);
    const std::lock_guard slot_lock(slot.mutex);
    slot.generation = (slot.generation + 1) & most_generation;
    slot.handle = std::uint64_t{kind} << 56 | std::uint64_t{slot.generation} << 32 | place;
    slot.object = std::move(object);
    return slot.handle;
  }

  // Throws InvalidArgument with `name` for what is no handle of this table.
  ObjectUse<Object, std::shared_lock> use(std::string_view name, std::uint64_t handle) {
    return find<std::shared_lock>(name, handle);
  }
  ObjectUse<Object, std::unique_lock> use_alone(std::string_view name, std::uint64_t handle) {
    return find<std::unique_lock>(name, handle);
  }

  // Waits for those who use it. Throws as `use` does.
  void remove(std::string_view name, std::uint64_t handle) {
    std::unique_ptr<Object> object;
    {
      const auto found = use_alone(name, handle);
      Slot& slot = slot_at(static_cast<std::uint32_t>(handle));
      slot.handle = 0;
      object = std::move(slot.object);
    }
    object.reset();  // before the place is given away, after its lock: it may call the caller
    const std::lock_guard lock(mutex_);
    free_.push_back(static_cast<std::uint32_t>(handle));
  }

 private:
  static constexpr std::uint32_t most_generation = (1U << 24) - 1;
  static constexpr std::uint32_t slots_of_chunk = 256;
  static constexpr std::uint32_t most_chunks = 4096;

  struct Slot {
    PatientMutex mutex;
    std::uint64_t handle = 0;  // 0: free
    std::uint32_t generation = 0;
    std::unique_ptr<Object> object;
  };
  using Chunk = std::array<Slot, slots_of_chunk>;

  // Chunks never move nor go, so that a place is found without the table's lock.
  Slot& slot_at(std::uint32_t place) {
    return (
        *chunks_[place / slots_of_chunk].load(std::memory_order_acquire))[place % slots_of_chunk];
  }

  std::uint32_t take_place() {
    if (!free_.empty()) {
      const std::uint32_t place = free_.back();
      free_.pop_back();
      return place;
    }
    if (count_ == most_chunks * slots_of_chunk) {
      fail_on_full_table();
    }
    std::atomic<Chunk*>& chunk = chunks_[count_ / slots_of_chunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) {
      chunk.store(std::make_unique<Chunk>().release(), std::memory_order_release);
    }
    return count_++;
  }

  template <template <typename> typename Lock>
  ObjectUse<Object, Lock> find(std::string_view name, std::uint64_t handle) {
    const auto place = static_cast<std::uint32_t>(handle);
    if (handle >> 56 == kind && place / slots_of_chunk < most_chunks &&
        chunks_[place / slots_of_chunk].load(std::memory_order_acquire) != nullptr) {
      Slot& slot = slot_at(place);
      Lock<PatientMutex> lock(slot.mutex);
      if (slot.handle == handle) {
        return {std::move(lock), slot.object.get()};
      }
    }
    fail_on_handle(name, handle);
  }

  std::mutex mutex_;  // of count_ and free_
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> free_;
  std::array<std::atomic<Chunk*>, most_chunks> chunks_ = {};
};

}  // namespace attnjit::c_abi
