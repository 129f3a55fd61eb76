// Calls densities of compiled Stan programs from code that XLA compiled. It knows nothing of Stan, only function
// pointers of BridgeStan's C API. XLA sees a density as its number in a table, not as an address: the same program
// is then the same XLA code in every process, and the persistent compilation cache can serve it.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

using GradientFn = int (*)(const void*, bool, bool, const double*, double*, double*, char**);
using ValueFn = int (*)(const void*, bool, bool, const double*, double*, char**);
using DrawFn = int (*)(const void*, uint64_t, double*, char**);
using ConstrainFn = int (*)(const void*, bool, bool, const double*, double*, void*, char**);
using UnconstrainFn = int (*)(const void*, const double*, double*, char**);
using FreeFn = void (*)(char*);
using RejectionFn = void (*)(const char*);

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFarOut = 1e3;  // beyond it, on the unconstrained scale, a rejection says nothing of the program
constexpr double kWorthAThread = 4e-6;  // seconds of work below which another thread does not pay; XLA's wait awake
constexpr double kAwake = 50e-6;  // seconds that the calling thread waits awake for the others, which is quicker

struct Density {
  const void* model;
  GradientFn gradient_fn;
  ValueFn value_fn;
  FreeFn free_fn;
  ConstrainFn constrain_fn;
  UnconstrainFn unconstrain_fn;
  int64_t width;  // constrained values
  RejectionFn on_first_rejection;
  bool jacobian;
  bool divides;  // by masses, which Stan rounds to zero
  std::mutex* one_at_a_time;  // set where the library has one autodiff tape for all threads
  std::atomic<int64_t> rejections{0};
  std::atomic<bool> told{false};
  std::atomic<double> seconds{0.0};  // of one evaluation with gradient, as last measured

  // Log density, constants kept, and its gradient where wanted. A rejection is log density -inf with gradient 0.
  void evaluate(int64_t dim, const double* theta, double* value, double* gradient) {
    double farthest = 0.0;
    for (int64_t i = 0; i < dim; ++i) {
      if (!std::isfinite(theta[i])) return refuse(dim, value, gradient);
      farthest = std::max(farthest, std::abs(theta[i]));
    }
    char* error = nullptr;
    int failed;
    bool rounded = false;
    {
      std::unique_lock<std::mutex> lock;
      if (one_at_a_time) lock = std::unique_lock<std::mutex>(*one_at_a_time);
      failed = gradient ? gradient_fn(model, false, jacobian, theta, value, gradient, &error)
                        : value_fn(model, false, jacobian, theta, value, &error);
      rounded = !failed && *value == kInfinity && (divides || on_edge(dim, theta));
    }
    if (failed || rounded || std::isnan(*value)) {
      refuse(dim, value, gradient);
      rejections.fetch_add(1, std::memory_order_relaxed);
      if (farthest < kFarOut && on_first_rejection && !told.exchange(true))
        on_first_rejection(error                ? error
                           : rounded && divides ? "the log density is +inf, as where a mass that it divides by is rounded to 0"
                           : rounded ? "a value was rounded to the edge of its range, where the log density is infinite"
                                     : "the log density is NaN");
      if (error) free_fn(error);
    }
  }

  // Whether a constrained value was rounded to the edge of its range, from which no way leads back: the last part of a
  // simplex is 0 below 1e-16. A density that is infinite there need not be so at the point itself.
  bool on_edge(int64_t dim, const double* theta) const {
    std::vector<double> values(width), back(dim);
    char* error = nullptr;
    const bool lost = constrain_fn(model, false, false, theta, values.data(), nullptr, &error) ||
                      unconstrain_fn(model, values.data(), back.data(), &error) ||
                      !std::all_of(back.begin(), back.end(), [](double x) { return std::isfinite(x); });
    if (error) free_fn(error);
    return lost;
  }

  static void refuse(int64_t dim, double* value, double* gradient) {
    *value = -kInfinity;
    if (gradient) std::memset(gradient, 0, sizeof(double) * dim);
  }
};

// Exact draws of a base: a program without parameters writes constrained values as its generated quantities, with a
// last one that is not zero where it failed, and the base takes them to the unconstrained scale.
struct Sampler {
  const void* forward;
  const void* base;
  DrawFn draw_fn;
  UnconstrainFn unconstrain_fn;
  ValueFn value_fn;
  FreeFn free_fn;
  int64_t width;
  int64_t tries;
  std::atomic<int64_t> drawn{0}, tried{0};
  std::atomic<double> seconds{0.0};

  // One draw. Values that the base refuses are drawn again, which conditions on its support; where that never ends, or
  // some value was not drawn at all, the draw is NaN.
  void draw(const uint32_t* key, int64_t words, int64_t dim, double* theta) {
    std::vector<double> values(width);
    uint64_t seed = 0;
    for (int64_t i = 0; i < words; ++i) seed = mix(seed, key[i]);
    Outcome outcome = kRefused;
    int64_t k = 0;
    for (; k < tries && outcome == kRefused; ++k) outcome = once(mix(seed, k), dim, values, theta);
    drawn.fetch_add(outcome == kDrawn, std::memory_order_relaxed);
    tried.fetch_add(k, std::memory_order_relaxed);
    if (outcome != kDrawn) std::fill(theta, theta + dim, std::numeric_limits<double>::quiet_NaN());
  }

 private:
  enum Outcome { kDrawn, kRefused, kBroken };

  Outcome once(uint64_t seed, int64_t dim, std::vector<double>& values, double* theta) {
    char* error = nullptr;
    double value = kInfinity;
    bool refused = draw_fn(forward, seed, values.data(), &error);
    const bool broken = !refused && (values.back() != 0.0 || std::any_of(values.begin(), values.end(), [](double x) {
                                       return std::isnan(x);
                                     }));
    if (!refused && !broken)
      refused = unconstrain_fn(base, values.data(), theta, &error) ||
                !std::all_of(theta, theta + dim, [](double x) { return std::isfinite(x); }) ||
                value_fn(base, false, true, theta, &value, &error) || !std::isfinite(value);
    if (error) free_fn(error);
    return broken ? kBroken : refused ? kRefused : kDrawn;
  }

  // A seed that depends on all that went in (the last step of splitmix64).
  static uint64_t mix(uint64_t z, uint64_t next) {
    z = (z + next) + 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
};

// Held in common while anything is evaluated, and alone while an entry is removed.
std::shared_mutex in_use;

// What XLA knows by number. A number is never given twice: code that was compiled for an entry that is gone finds none.
template <typename T>
class Table {
 public:
  T* find(int64_t id) const { return id >= 0 && id < size_.load() ? entries_[id].load() : nullptr; }
  // Removes an entry; false where something is evaluated just now, as it may be by the thread that asks.
  bool remove(int64_t id) {
    std::unique_lock<std::shared_mutex> alone(in_use, std::try_to_lock);
    if (!alone.owns_lock()) return false;
    if (find(id)) delete entries_[id].exchange(nullptr);
    return true;
  }
  // The number of a new entry, -1 where the table is full.
  int64_t add(T* entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t id = size_.load();
    if (id >= static_cast<int64_t>(entries_.size())) return -1;
    entries_[id].store(entry);
    size_.store(id + 1);
    return id;
  }

 private:
  std::array<std::atomic<T*>, 65536> entries_{};
  std::atomic<int64_t> size_{0};
  std::mutex mutex_;
};

Table<Density> densities;
Table<Sampler> samplers;

std::mutex* lock_of_library(int64_t gradient_fn) {
  static std::mutex mutex;
  static std::map<int64_t, std::unique_ptr<std::mutex>> locks;
  std::lock_guard<std::mutex> lock(mutex);
  auto& found = locks[gradient_fn];
  if (!found) found = std::make_unique<std::mutex>();
  return found.get();
}

// Work on points 0, ..., points - 1, of which any thread may take a few at a time.
struct Batch {
  std::function<void(int64_t)> evaluate;
  int64_t points, grain;
  std::atomic<int64_t> next{0}, done{0};
  std::mutex mutex;
  std::condition_variable finished;

  int64_t work() {
    int64_t mine = 0;
    for (int64_t start; (start = next.fetch_add(grain)) < points;) {
      const int64_t stop = std::min(start + grain, points);
      for (int64_t i = start; i < stop; ++i) evaluate(i);
      mine += stop - start;
      if (done.fetch_add(stop - start) + (stop - start) == points) {
        std::lock_guard<std::mutex> lock(mutex);
        finished.notify_all();
      }
    }
    return mine;
  }
};

// Evaluates all points, on several threads where that pays; `seconds` is what one point costs, as last measured.
template <typename Evaluate>
void share(ffi::ThreadPool& pool, int64_t points, bool one_thread, std::atomic<double>& seconds, Evaluate evaluate) {
  if (points == 1) return evaluate(0);
  const double cost = seconds.load(std::memory_order_relaxed);
  const int64_t grain = cost > 0 ? static_cast<int64_t>(std::ceil(kWorthAThread / cost)) : points;
  const int64_t threads = one_thread ? 1 : std::min<int64_t>(pool.num_threads(), points / grain);
  auto batch = std::make_shared<Batch>();
  batch->evaluate = evaluate;
  batch->points = points;
  batch->grain = threads > 1 ? grain : points;
  // The calling thread works too, so a busy pool delays nothing: a helper that comes late finds nothing to take.
  for (int64_t t = 1; t < threads; ++t) pool.Schedule([batch] { batch->work(); });
  const auto start = std::chrono::steady_clock::now();
  const int64_t mine = batch->work();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (mine > 0) seconds.store(elapsed.count() / mine, std::memory_order_relaxed);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kAwake);
  while (batch->done.load() != points && std::chrono::steady_clock::now() < until) {
  }
  if (batch->done.load() == points) return;
  std::unique_lock<std::mutex> lock(batch->mutex);
  batch->finished.wait(lock, [&] { return batch->done.load() == points; });
}

ffi::Error evaluate_batch(ffi::ThreadPool& pool, int64_t id, ffi::Buffer<ffi::F64>& x, double* values,
                          double* gradients) {
  std::shared_lock<std::shared_mutex> together(in_use);
  Density* density = densities.find(id);
  if (!density) return ffi::Error::Internal("pathtemp: no Stan density has this number in this process");
  const int64_t dim = x.dimensions().back();
  const double* theta = x.typed_data();
  share(pool, x.element_count() / dim, density->one_at_a_time != nullptr, density->seconds, [=](int64_t i) {
    density->evaluate(dim, theta + i * dim, values + i, gradients ? gradients + i * dim : nullptr);
  });
  return ffi::Error::Success();
}

ffi::Error exact_draws(ffi::ThreadPool pool, ffi::Buffer<ffi::U32> keys, ffi::ResultBuffer<ffi::F64> theta,
                       int64_t sampler) {
  std::shared_lock<std::shared_mutex> together(in_use);
  Sampler* found = samplers.find(sampler);
  if (!found) return ffi::Error::Internal("pathtemp: no Stan sampler has this number in this process");
  const int64_t words = keys.dimensions().back(), dim = theta->dimensions().back();
  const uint32_t* key = keys.typed_data();
  double* out = theta->typed_data();
  share(pool, keys.element_count() / words, false, found->seconds,
        [=](int64_t i) { found->draw(key + i * words, words, dim, out + i * dim); });
  return ffi::Error::Success();
}

ffi::Error value_and_gradient(ffi::ThreadPool pool, ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> value,
                              ffi::ResultBuffer<ffi::F64> gradient, int64_t density) {
  return evaluate_batch(pool, density, x, value->typed_data(), gradient->typed_data());
}

ffi::Error value_only(ffi::ThreadPool pool, ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> value,
                      int64_t density) {
  return evaluate_batch(pool, density, x, value->typed_data(), nullptr);
}

}  // namespace

#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(pathtemp_value_and_gradient, value_and_gradient,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Attr<int64_t>("density"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(pathtemp_value, value_only,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Attr<int64_t>("density"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(pathtemp_draws, exact_draws,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::Buffer<ffi::U32>>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Attr<int64_t>("sampler"));
#pragma GCC visibility pop

#define API extern "C" __attribute__((visibility("default")))

// Enters a density into its table and returns its number, -1 where the table is full.
API int64_t pathtemp_register(int64_t model, int64_t gradient_fn, int64_t value_fn, int64_t free_fn,
                              int64_t constrain_fn, int64_t unconstrain_fn, int64_t width, int64_t on_first_rejection,
                              bool jacobian, bool divides, bool threadsafe) {
  return densities.add(new Density{reinterpret_cast<const void*>(model),
                                   reinterpret_cast<GradientFn>(gradient_fn),
                                   reinterpret_cast<ValueFn>(value_fn),
                                   reinterpret_cast<FreeFn>(free_fn),
                                   reinterpret_cast<ConstrainFn>(constrain_fn),
                                   reinterpret_cast<UnconstrainFn>(unconstrain_fn),
                                   width,
                                   reinterpret_cast<RejectionFn>(on_first_rejection),
                                   jacobian,
                                   divides,
                                   threadsafe ? nullptr : lock_of_library(gradient_fn)});
}

// Enters a sampler into its table, likewise.
API int64_t pathtemp_register_sampler(int64_t forward, int64_t base, int64_t draw_fn, int64_t unconstrain_fn,
                                      int64_t value_fn, int64_t free_fn, int64_t width, int64_t tries) {
  return samplers.add(new Sampler{reinterpret_cast<const void*>(forward), reinterpret_cast<const void*>(base),
                                  reinterpret_cast<DrawFn>(draw_fn), reinterpret_cast<UnconstrainFn>(unconstrain_fn),
                                  reinterpret_cast<ValueFn>(value_fn), reinterpret_cast<FreeFn>(free_fn), width,
                                  tries});
}

// Take an entry out of its table, so that its programs can go; false where that has to wait.
API bool pathtemp_release(int64_t id) { return densities.remove(id); }
API bool pathtemp_release_sampler(int64_t id) { return samplers.remove(id); }

API int64_t pathtemp_rejections(int64_t id) { return densities.find(id)->rejections.load(); }

// Share of what the sampler tried that the base accepted.
API double pathtemp_accepted(int64_t id) {
  const Sampler* sampler = samplers.find(id);
  return static_cast<double>(sampler->drawn.load()) / static_cast<double>(std::max<int64_t>(sampler->tried.load(), 1));
}

// Evaluates a density `repeats` times from C, each time at a slightly other point: what the call itself costs.
API void pathtemp_repeat(int64_t id, int64_t dim, int64_t repeats, double* theta, double* value, double* gradient) {
  Density* density = densities.find(id);
  for (int64_t k = 0; k < repeats; ++k) {
    density->evaluate(dim, theta, value, gradient);
    for (int64_t i = 0; i < dim; ++i) theta[i] += 1e-9 * gradient[i];
  }
}
