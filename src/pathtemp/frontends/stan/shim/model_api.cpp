// The C functions through which a compiled Stan program is used: names and signatures of BridgeStan's C API, so that
// libraries built by either can be used by both. It knows no particular program: compiled once, linked into each.
#include <stan/math/rev/core.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/util/create_rng.hpp>
#include <stan/version.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// defined by the C++ that stanc writes, or by what follows it
stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages);
void pathtemp_draw(const stan::model::model_base& model, std::uint64_t seed, Eigen::VectorXd& values,
                   std::ostream* messages);

#define API extern "C" __attribute__((visibility("default")))

namespace {

using Vector = Eigen::VectorXd;
using VarVector = Eigen::Matrix<stan::math::var, Eigen::Dynamic, 1>;
using PrintCallback = void (*)(const char*, int);

PrintCallback print_callback = nullptr;
bool printed = false;
std::mutex print_mutex;

// What every thread that evaluates a density, those of XLA's pool among them, needs for itself: an autodiff tape; and
// the unconstrained point, the stream that print() statements write to and a generator of random numbers, kept from
// call to call because to make them costs more than a small density does. It lies on the heap: the thread-local
// storage of shared libraries is scarce.
struct ThreadState {
#ifdef STAN_THREADS
  stan::math::ChainableStack tape;
#endif
  VarVector point;
  std::ostringstream stream;
  stan::rng_t unused = stan::services::util::create_rng(0, 0);  // where no random numbers are drawn
};

ThreadState& thread_state() {
  static thread_local std::unique_ptr<ThreadState> state;
  if (!state) state = std::make_unique<ThreadState>();
  return *state;
}

// What print() statements wrote, passed on at the end of the call: the first time to a callback, where there is one. A
// density is evaluated many thousand times, and all of them would say the same.
class Messages {
 public:
  explicit Messages(ThreadState& state) : stream_(state.stream) {}
  ~Messages() {
    if (stream_.tellp() <= 0) return;
    const std::string text = stream_.str();
    stream_.str(std::string());
    stream_.clear();
    std::lock_guard<std::mutex> lock(print_mutex);
    if (print_callback) {
      if (!std::exchange(printed, true)) print_callback(text.data(), static_cast<int>(text.size()));
    } else
      std::cout << text << std::flush;
  }
  std::ostream* stream() { return &stream_; }

 private:
  std::ostringstream& stream_;
};

// Gives the memory of the tape back, also when the program throws.
struct TapeCleaner {
  ~TapeCleaner() { stan::math::recover_memory(); }
};

std::string join(const std::vector<std::string>& words) {
  std::string joined;
  for (const auto& word : words) joined += joined.empty() ? word : "," + word;
  return joined;
}

// Runs f; an exception becomes an error message and the return value -1.
template <typename F>
int guarded(char** error, F&& f) noexcept {
  const char* message = "unknown C++ exception";
  std::string text;
  try {
    f();
    return 0;
  } catch (const std::exception& e) {
    text = e.what();
    message = text.c_str();
  } catch (...) {
  }
  if (error) *error = strdup(message);
  return -1;
}

}  // namespace

struct bs_rng {
  explicit bs_rng(unsigned int seed) : engine(stan::services::util::create_rng(seed, 0)) {}
  stan::rng_t engine;
};

struct bs_model {
  bs_model(const char* data, unsigned int seed) {
    Messages messages(thread_state());
    TapeCleaner cleaner;
    const std::string text = data ? data : "";
    std::unique_ptr<stan::io::var_context> context;
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
      context = std::make_unique<stan::io::empty_var_context>();
    } else {
      std::istringstream stream(text);
      context = std::make_unique<stan::json::json_data>(stream);
    }
    model.reset(&new_model(*context, seed, messages.stream()));
    dim = static_cast<int>(model->num_params_r());
    name = model->model_name();
    describe();
  }

  double log_density(bool propto, bool jacobian, const double* theta) const {
    Messages messages(thread_state());
    if (propto) {
      TapeCleaner cleaner;
      VarVector x = Eigen::Map<const Vector>(theta, dim);
      return evaluate(propto, jacobian, x, messages).val();
    }
    Vector x = Eigen::Map<const Vector>(theta, dim);
    return jacobian ? model->log_prob_jacobian(x, messages.stream()) : model->log_prob(x, messages.stream());
  }

  double log_density_gradient(bool propto, bool jacobian, const double* theta, double* gradient) const {
    ThreadState& state = thread_state();
    Messages messages(state);
    TapeCleaner cleaner;
    VarVector& x = state.point;
    x.resize(dim);
    for (int i = 0; i < dim; ++i) x[i] = stan::math::var(theta[i]);
    stan::math::var value = evaluate(propto, jacobian, x, messages);
    stan::math::grad(value.vi_);
    for (int i = 0; i < dim; ++i) gradient[i] = x[i].adj();
    return value.val();
  }

  std::unique_ptr<stan::model::model_base> model;
  int dim = 0;
  std::string name, info, unconstrained_names;
  std::string names[2][2];  // [with transformed parameters][with generated quantities]
  int counts[2][2];

 private:
  stan::math::var evaluate(bool propto, bool jacobian, VarVector& x, Messages& messages) const {
    std::ostream* stream = messages.stream();
    if (propto) return jacobian ? model->log_prob_propto_jacobian(x, stream) : model->log_prob_propto(x, stream);
    return jacobian ? model->log_prob_jacobian(x, stream) : model->log_prob(x, stream);
  }

  void describe() {
    std::vector<std::string> words;
    model->unconstrained_param_names(words, false, false);
    unconstrained_names = join(words);
    for (int transformed = 0; transformed < 2; ++transformed)
      for (int generated = 0; generated < 2; ++generated) {
        words.clear();
        model->constrained_param_names(words, transformed, generated);
        names[transformed][generated] = join(words);
        counts[transformed][generated] = static_cast<int>(words.size());
      }
    std::ostringstream text;
    text << "Stan version: " << stan::MAJOR_VERSION << '.' << stan::MINOR_VERSION << '.' << stan::PATCH_VERSION << '\n';
#ifdef STAN_THREADS
    text << "STAN_THREADS=true\n";
#else
    text << "STAN_THREADS=false\n";
#endif
    for (const auto& line : model->model_compile_info()) text << line << '\n';
    info = text.str();
  }
};

API int bs_major_version = 2;
API int bs_minor_version = 9;
API int bs_patch_version = 0;

API bs_model* bs_model_construct(const char* data, unsigned int seed, char** error) {
  bs_model* model = nullptr;
  guarded(error, [&] { model = new bs_model(data, seed); });
  return model;
}
API void bs_model_destruct(bs_model* model) { delete model; }
API void bs_free_error_msg(char* message) { std::free(message); }
API const char* bs_name(const bs_model* model) { return model->name.c_str(); }
API const char* bs_model_info(const bs_model* model) { return model->info.c_str(); }
API const char* bs_param_names(const bs_model* model, bool transformed, bool generated) {
  return model->names[transformed][generated].c_str();
}
API const char* bs_param_unc_names(const bs_model* model) { return model->unconstrained_names.c_str(); }
API int bs_param_num(const bs_model* model, bool transformed, bool generated) {
  return model->counts[transformed][generated];
}
API int bs_param_unc_num(const bs_model* model) { return model->dim; }

API bs_rng* bs_rng_construct(unsigned int seed, char** error) {
  bs_rng* rng = nullptr;
  guarded(error, [&] { rng = new bs_rng(seed); });
  return rng;
}
API void bs_rng_destruct(bs_rng* rng) { delete rng; }

API int bs_param_constrain(const bs_model* model, bool transformed, bool generated, const double* theta, double* out,
                           bs_rng* rng, char** error) {
  return guarded(error, [&] {
    if (generated && !rng) throw std::invalid_argument("generated quantities need a random number generator");
    ThreadState& state = thread_state();
    Messages messages(state);
    Vector x = Eigen::Map<const Vector>(theta, model->dim), values;
    model->model->write_array(rng ? rng->engine : state.unused, x, values, transformed, generated, messages.stream());
    Eigen::Map<Vector>(out, values.size()) = values;
  });
}

// One draw of a program without parameters: its generated quantities. BridgeStan has no such function.
API int bs_draw(const bs_model* model, std::uint64_t seed, double* out, char** error) {
  return guarded(error, [&] {
    Messages messages(thread_state());
    Vector values;
    pathtemp_draw(*model->model, seed, values, messages.stream());
    Eigen::Map<Vector>(out, values.size()) = values;
  });
}

API int bs_param_unconstrain(const bs_model* model, const double* constrained, double* out, char** error) {
  return guarded(error, [&] {
    Messages messages(thread_state());
    Vector values = Eigen::Map<const Vector>(constrained, model->counts[0][0]), theta;
    model->model->unconstrain_array(values, theta, messages.stream());
    Eigen::Map<Vector>(out, theta.size()) = theta;
  });
}

API int bs_param_unconstrain_json(const bs_model* model, const char* json, double* out, char** error) {
  return guarded(error, [&] {
    Messages messages(thread_state());
    std::istringstream stream(json);
    stan::json::json_data context(stream);
    Vector theta(model->dim);
    model->model->transform_inits(context, theta, messages.stream());
    Eigen::Map<Vector>(out, theta.size()) = theta;
  });
}

// Uniform starts on (-radius, radius), tried until the density is finite.
API int bs_param_initialize(const bs_model* model, const char* json, bs_rng* rng, double radius, int tries,
                            bool jacobian, double* out, char** error) {
  return guarded(error, [&] {
    if (json && *json) throw std::invalid_argument("initial values are not taken here; unconstrain them instead");
    std::uniform_real_distribution<double> uniform(-radius, radius);
    std::string reason = "the density is not finite";
    for (int k = 0; k < tries; ++k) {
      for (int i = 0; i < model->dim; ++i) out[i] = radius > 0 ? uniform(rng->engine) : 0.0;
      try {
        if (std::isfinite(model->log_density(false, jacobian, out))) return;
      } catch (const std::exception& e) {
        reason = e.what();
      }
    }
    throw std::runtime_error("no start was found: " + reason);
  });
}

API int bs_log_density(const bs_model* model, bool propto, bool jacobian, const double* theta, double* value,
                       char** error) {
  return guarded(error, [&] { *value = model->log_density(propto, jacobian, theta); });
}

API int bs_log_density_gradient(const bs_model* model, bool propto, bool jacobian, const double* theta, double* value,
                                double* gradient, char** error) {
  return guarded(error, [&] { *value = model->log_density_gradient(propto, jacobian, theta, gradient); });
}

// Second derivatives are central differences of gradients, as in BridgeStan's own default.
API int bs_log_density_hessian_vector_product(const bs_model* model, bool propto, bool jacobian, const double* theta,
                                              const double* direction, double* value, double* product, char** error) {
  return guarded(error, [&] {
    const int n = model->dim;
    const double step = 1e-5;
    const Vector x = Eigen::Map<const Vector>(theta, n), d = Eigen::Map<const Vector>(direction, n);
    Vector up(n), down(n);
    *value = model->log_density(propto, jacobian, theta);
    model->log_density_gradient(propto, jacobian, Vector(x + step * d).data(), up.data());
    model->log_density_gradient(propto, jacobian, Vector(x - step * d).data(), down.data());
    Eigen::Map<Vector>(product, n) = (up - down) / (2 * step);
  });
}

API int bs_log_density_hessian(const bs_model* model, bool propto, bool jacobian, const double* theta, double* value,
                               double* gradient, double* hessian, char** error) {
  return guarded(error, [&] {
    const int n = model->dim;
    const double step = 1e-5;
    Vector x = Eigen::Map<const Vector>(theta, n), up(n), down(n);
    Eigen::MatrixXd columns(n, n);
    *value = model->log_density_gradient(propto, jacobian, theta, gradient);
    for (int i = 0; i < n; ++i) {
      x[i] = theta[i] + step;
      model->log_density_gradient(propto, jacobian, x.data(), up.data());
      x[i] = theta[i] - step;
      model->log_density_gradient(propto, jacobian, x.data(), down.data());
      x[i] = theta[i];
      columns.col(i) = (up - down) / (2 * step);
    }
    Eigen::Map<Eigen::MatrixXd>(hessian, n, n) = 0.5 * (columns + columns.transpose());
  });
}

API int bs_set_print_callback(PrintCallback callback, char**) {
  std::lock_guard<std::mutex> lock(print_mutex);
  print_callback = callback;
  return 0;
}
