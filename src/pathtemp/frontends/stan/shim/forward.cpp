// Follows the C++ of a program and of the program that draws from its base, in one file with them: makes the one that
// the data ask for, and draws.
#include <cstdint>

namespace {

// splitmix64: a generator that costs nothing to seed, which each draw does. To seed Stan's own takes longer than a draw.
class SplitMix {
 public:
  using result_type = std::uint64_t;
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type(0); }
  result_type operator()() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages) {
  return data.contains_i("pathtemp_forward") ? pathtemp_forward_new_model(data, seed, messages)
                                             : pathtemp_density_new_model(data, seed, messages);
}

void pathtemp_draw(const stan::model::model_base& model, std::uint64_t seed, Eigen::VectorXd& values,
                   std::ostream* messages) {
  SplitMix rng(seed);
  Eigen::VectorXd none(0);
  static_cast<const pathtemp_forward_stan_model&>(model).write_array(rng, none, values, false, true, messages);
}
