// An allocator of torch for a CPU that puts pages that fault before and behind each tensor.
//
// It is off until `guard_enable`; then torch's own allocator serves only what it cannot. A tensor's
// start is aligned to 64 bytes, so its end is up to 63 bytes before such a page. A pattern in this
// gap, and in the one before the tensor, shows later whether it was overwritten.

#include <c10/core/Allocator.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace {

constexpr size_t kBlocks = 4096;         // a process may have 65,530 mappings; each takes three
constexpr size_t kAlignment = 64;        // as torch's own
constexpr size_t kGuard = 1 << 20;       // address space only; rows of a matrix may be long
constexpr int kPoison = 0xFF;            // see POISON in region.py

struct Block {
  std::atomic<char*> data{nullptr};
  size_t size = 0;
  char* map = nullptr;
  size_t mapped = 0;
};

Block blocks[kBlocks];
std::mutex lock;
std::atomic<bool> enabled{false};
size_t damaged_size = 0;                 // of the first block whose gaps were overwritten
ptrdiff_t damaged_at = 0;
c10::Allocator* usual = nullptr;
struct sigaction before;
int report = -1;

void inspect(const Block& block) {
  const char* data = block.data;
  const char* end = block.map + block.mapped - kGuard;
  for (const char* at = block.map + kGuard; at < end && !damaged_size; ++at) {
    if (at == data) at += block.size;
    if (at < end && *at != static_cast<char>(kPoison)) {
      damaged_size = block.size;
      damaged_at = at - data;
    }
  }
}

// Unmaps a block and returns whether there is one that begins there.
bool release(void* data) {
  std::lock_guard<std::mutex> held(lock);
  for (Block& block : blocks) {
    if (block.data == data) {
      inspect(block);
      munmap(block.map, block.mapped);
      block.data = nullptr;
      return true;
    }
  }
  return false;
}

void release_guarded(void* data) { release(data); }

void release_any(void* data) {
  // null is that of an empty tensor, and of every unused block
  if (data == nullptr || !release(data)) usual->raw_deallocate(data);
}

// Returns null if there is no room.
char* allocate_guarded(size_t size) {
  std::lock_guard<std::mutex> held(lock);
  for (Block& block : blocks) {
    if (block.data != nullptr) continue;
    const size_t page = sysconf(_SC_PAGESIZE), body = (size + page - 1) / page * page;
    if (body < size) return nullptr;
    const size_t mapped = body + 2 * kGuard;
    void* map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return nullptr;
    char* first = static_cast<char*>(map) + kGuard;
    if (mprotect(first, body, PROT_READ | PROT_WRITE) != 0) {
      munmap(map, mapped);
      return nullptr;
    }
    block.size = size;
    block.map = static_cast<char*>(map);
    block.mapped = mapped;
    char* data = first + (body - size) / kAlignment * kAlignment;
    std::memset(first, kPoison, body);
    block.data = data;
    return data;
  }
  return nullptr;
}

struct Guarded final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    char* data = enabled && size ? allocate_guarded(size) : nullptr;
    if (data == nullptr) return usual->allocate(size);
    return {data, data, &release_guarded, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_any; }
  void copy_data(void* target, const void* source, size_t count) const override {
    default_copy_data(target, source, count);
  }
};

const char* kind_of(void* context) {
#if defined(__x86_64__)
  const auto error = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return error & 2 ? "wrote" : "read";
#else
  return "accessed";
#endif
}

// Reports an access to a guard, then leaves the fault to the earlier handler: it occurs again, unless
// a process sent it.
void on_fault(int, siginfo_t* info, void* context) {
  char* at = static_cast<char*>(info->si_addr);
  for (Block& block : blocks) {
    char* data = block.data;
    if (data == nullptr || at < block.map || at >= block.map + block.mapped) continue;
    char line[128];
    const int length = snprintf(
        line, sizeof line, "Guard: %s byte %td of %zu\n", kind_of(context), at - data, block.size);
    if (length > 0 && write(report, line, length) < 0) continue;
    break;
  }
  sigaction(SIGSEGV, &before, nullptr);
  if (info->si_code <= 0) raise(SIGSEGV);
}

}  // namespace

extern "C" {

void guard_install() {
  static Guarded guarded;
  usual = c10::GetAllocator(c10::DeviceType::CPU);
  c10::SetAllocator(c10::DeviceType::CPU, &guarded, 255);
}

void guard_report_to(int descriptor) {
  report = descriptor;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

void guard_enable(int on) { enabled = on != 0; }

// Returns the size of the first tensor whose gaps were overwritten since the last call, or 0.
size_t guard_damaged(ptrdiff_t* at) {
  std::lock_guard<std::mutex> held(lock);
  for (const Block& block : blocks) {
    if (block.data != nullptr) inspect(block);
  }
  const size_t size = damaged_size;
  *at = damaged_at;
  damaged_size = 0;
  return size;
}
}
