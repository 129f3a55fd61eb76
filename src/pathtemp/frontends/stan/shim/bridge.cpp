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
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

using GradientFn = int (*)(const void*, bool, bool, const double*, double*, double*, char**);
using ValueFn = int (*)(const void*, bool, bool, const double*, double*, char**);
using FreeFn = void (*)(char*);
using RejectionFn = void (*)(int64_t, const char*);

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFarOut = 1e3;  // beyond it, on the unconstrained scale, a rejection says nothing of the program
constexpr double kWorthAThread = 50e-6;  // seconds of work below which waking another thread does not pay

struct Density {
  const void* model;
  GradientFn gradient_fn;
  ValueFn value_fn;
  FreeFn free_fn;
  RejectionFn on_first_rejection;
  bool jacobian;
  std::mutex* one_at_a_time;  // set where the library has one autodiff tape for all threads
  int64_t id;
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
    {
      std::unique_lock<std::mutex> lock;
      if (one_at_a_time) lock = std::unique_lock<std::mutex>(*one_at_a_time);
      failed = gradient ? gradient_fn(model, false, jacobian, theta, value, gradient, &error)
                        : value_fn(model, false, jacobian, theta, value, &error);
    }
    if (failed || std::isnan(*value)) {
      refuse(dim, value, gradient);
      rejections.fetch_add(1, std::memory_order_relaxed);
      if (farthest < kFarOut && on_first_rejection && !told.exchange(true))
        on_first_rejection(id, error ? error : "the log density is NaN");
      if (error) free_fn(error);
    }
  }

  static void refuse(int64_t dim, double* value, double* gradient) {
    *value = -kInfinity;
    if (gradient) std::memset(gradient, 0, sizeof(double) * dim);
  }
};

std::array<std::atomic<Density*>, 65536> table{};
std::atomic<int64_t> registered{0};

std::mutex* lock_of_library(int64_t gradient_fn) {
  static std::mutex mutex;
  static std::map<int64_t, std::unique_ptr<std::mutex>> locks;
  std::lock_guard<std::mutex> lock(mutex);
  auto& found = locks[gradient_fn];
  if (!found) found = std::make_unique<std::mutex>();
  return found.get();
}

// A batch whose points any thread may take, a few at a time.
struct Batch {
  Density* density;
  int64_t dim, points, grain;
  const double* theta;
  double *values, *gradients;
  std::atomic<int64_t> next{0}, done{0};
  std::mutex mutex;
  std::condition_variable finished;

  int64_t work() {
    int64_t mine = 0;
    for (int64_t start; (start = next.fetch_add(grain)) < points;) {
      const int64_t stop = std::min(start + grain, points);
      for (int64_t i = start; i < stop; ++i)
        density->evaluate(dim, theta + i * dim, values + i, gradients ? gradients + i * dim : nullptr);
      mine += stop - start;
      if (done.fetch_add(stop - start) + (stop - start) == points) {
        std::lock_guard<std::mutex> lock(mutex);
        finished.notify_all();
      }
    }
    return mine;
  }
};

ffi::Error evaluate_batch(ffi::ThreadPool& pool, int64_t id, ffi::Buffer<ffi::F64>& x, double* values,
                          double* gradients) {
  Density* density = id >= 0 && id < registered.load() ? table[id].load() : nullptr;
  if (!density) return ffi::Error::Internal("pathtemp: no Stan density has this number in this process");
  const int64_t dim = x.dimensions().back();
  const int64_t points = x.element_count() / dim;
  const double* theta = x.typed_data();
  if (points == 1) {
    density->evaluate(dim, theta, values, gradients);
    return ffi::Error::Success();
  }
  const double seconds = density->seconds.load(std::memory_order_relaxed);
  const int64_t grain = seconds > 0 ? static_cast<int64_t>(std::ceil(kWorthAThread / seconds)) : points;
  const int64_t threads = density->one_at_a_time ? 1 : std::min<int64_t>(pool.num_threads(), points / grain);

  auto batch = std::make_shared<Batch>();
  batch->density = density;
  batch->dim = dim;
  batch->points = points;
  batch->grain = threads > 1 ? grain : points;
  batch->theta = theta;
  batch->values = values;
  batch->gradients = gradients;
  // The calling thread works too, so a busy pool delays nothing: a helper that comes late finds nothing to take.
  for (int64_t t = 1; t < threads; ++t) pool.Schedule([batch] { batch->work(); });
  const auto start = std::chrono::steady_clock::now();
  const int64_t mine = batch->work();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (mine > 0) density->seconds.store(elapsed.count() / mine, std::memory_order_relaxed);
  std::unique_lock<std::mutex> lock(batch->mutex);
  batch->finished.wait(lock, [&] { return batch->done.load() == points; });
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
#pragma GCC visibility pop

#define API extern "C" __attribute__((visibility("default")))

// Enters a density into the table and returns its number, -1 where the table is full.
API int64_t pathtemp_register(int64_t model, int64_t gradient_fn, int64_t value_fn, int64_t free_fn,
                              int64_t on_first_rejection, bool jacobian, bool threadsafe) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  const int64_t id = registered.load();
  if (id >= static_cast<int64_t>(table.size())) return -1;
  auto* density = new Density{reinterpret_cast<const void*>(model),
                              reinterpret_cast<GradientFn>(gradient_fn),
                              reinterpret_cast<ValueFn>(value_fn),
                              reinterpret_cast<FreeFn>(free_fn),
                              reinterpret_cast<RejectionFn>(on_first_rejection),
                              jacobian,
                              threadsafe ? nullptr : lock_of_library(gradient_fn),
                              id};
  table[id].store(density);
  registered.store(id + 1);
  return id;
}

API int64_t pathtemp_rejections(int64_t id) { return table[id].load()->rejections.load(); }

// Evaluates a density `repeats` times from C, each time at a slightly other point: what the call itself costs.
API void pathtemp_repeat(int64_t id, int64_t dim, int64_t repeats, double* theta, double* value, double* gradient) {
  Density* density = table[id].load();
  for (int64_t k = 0; k < repeats; ++k) {
    density->evaluate(dim, theta, value, gradient);
    for (int64_t i = 0; i < dim; ++i) theta[i] += 1e-9 * gradient[i];
  }
}
