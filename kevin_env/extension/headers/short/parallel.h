// Loops over torch's threads: in parallel where the source is compiled with OpenMP, else in one thread, as torch's are.
#pragma once

#include <ATen/Config.h>

#include "check.h"

#if AT_PARALLEL_OPENMP

#ifdef _OPENMP
#include <omp.h>
#define INTRA_OP_PARALLEL
#endif

namespace c10 {
class ParallelGuard {  // torch's own: marks this thread as running such a loop
 public:
  static bool is_enabled();
  ParallelGuard(bool state);
  ~ParallelGuard();

 private:
  bool previous_state_;
};
}  // namespace c10

namespace at {

void init_num_threads();
int get_num_threads();
void set_num_threads(int threads);
int get_thread_num();
bool in_parallel_region();
inline int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }

namespace internal {

constexpr int64_t GRAIN_SIZE = 32768;
void set_thread_num(int number);

class ThreadIdGuard {
  int old_;

 public:
  ThreadIdGuard(int number) : old_(get_thread_num()) { set_thread_num(number); }
  ~ThreadIdGuard() { set_thread_num(old_); }
};

inline bool short_is_parallel(int64_t count, int64_t grain_size) {
#ifdef INTRA_OP_PARALLEL
  thread_local bool initialised = false;
  if (!initialised) init_num_threads(), initialised = true;
  return count > grain_size && count > 1 && !in_parallel_region() && get_num_threads() > 1;
#else
  return false;
#endif
}

#ifdef INTRA_OP_PARALLEL
template <class F>
void short_invoke(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  bool failed = false;
  std::exception_ptr error;
#pragma omp parallel
  {
    int64_t threads = omp_get_num_threads();
    const int64_t most = grain_size > 0 ? divup(end - begin, grain_size) : threads;
    if (most < threads) threads = most;
    const int64_t number = omp_get_thread_num(), chunk = divup(end - begin, threads), first = begin + number * chunk;
    if (first < end) {
      try {
        ThreadIdGuard id(number);
        c10::ParallelGuard guard(true);
        f(first, end < first + chunk ? end : first + chunk);
      } catch (...) {
        if (!__atomic_test_and_set(&failed, __ATOMIC_SEQ_CST)) error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}
#endif

}  // namespace internal

template <class F>
inline void parallel_for(const int64_t begin, const int64_t end, const int64_t grain_size, const F& f) {
  if (begin >= end) return;
#ifdef INTRA_OP_PARALLEL
  if (internal::short_is_parallel(end - begin, grain_size)) return internal::short_invoke(begin, end, grain_size, f);
#endif
  internal::ThreadIdGuard id(0);
  c10::ParallelGuard guard(true);
  f(begin, end);
}

template <class scalar_t, class F, class SF>
inline scalar_t parallel_reduce(
    const int64_t begin, const int64_t end, const int64_t grain_size, const scalar_t ident, const F& f, const SF& sf) {
  TORCH_CHECK(grain_size >= 0);
  if (begin >= end) return ident;
#ifdef INTRA_OP_PARALLEL
  if (internal::short_is_parallel(end - begin, grain_size)) {
    struct Cell {
      scalar_t value;
    };
    const int threads = get_num_threads();
    struct Cells {
      Cell* all;
      ~Cells() { delete[] all; }
    } results{new Cell[threads]};
    for (int i = 0; i < threads; ++i) results.all[i].value = ident;
    internal::short_invoke(begin, end, grain_size, [&](int64_t from, int64_t to) {
      const auto number = get_thread_num();
      results.all[number].value = f(from, to, ident);
    });
    scalar_t result = ident;
    for (int i = 0; i < threads; ++i) result = sf(result, results.all[i].value);
    return result;
  }
#endif
  internal::ThreadIdGuard id(0);
  c10::ParallelGuard guard(true);
  return f(begin, end, ident);
}

}  // namespace at

#endif
