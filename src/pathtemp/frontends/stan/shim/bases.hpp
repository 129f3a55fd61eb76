// What the C++ of a program derives from, in place of Stan's model_base_crtp: that asks for sixteen versions of the
// density, and most of the time that a program takes to compile goes into them. Four are used, and none of a program
// that draws.
#include <stan/model/model_base.hpp>

#include <stdexcept>
#include <vector>

namespace stan {
namespace model {

// Has the virtual functions that nothing here calls.
class pathtemp_unused : public model_base {
 public:
  using Vars = Eigen::Matrix<math::var, -1, 1>;
  using model_base::model_base;

  double log_prob_propto(Eigen::VectorXd&, std::ostream*) const override { return unused(); }
  math::var log_prob_propto(Vars&, std::ostream*) const override { return unused(); }
  double log_prob_propto_jacobian(Eigen::VectorXd&, std::ostream*) const override { return unused(); }
  math::var log_prob_propto_jacobian(Vars&, std::ostream*) const override { return unused(); }

  double log_prob(std::vector<double>&, std::vector<int>&, std::ostream*) const override { return unused(); }
  math::var log_prob(std::vector<math::var>&, std::vector<int>&, std::ostream*) const override { return unused(); }
  double log_prob_jacobian(std::vector<double>&, std::vector<int>&, std::ostream*) const override { return unused(); }
  math::var log_prob_jacobian(std::vector<math::var>&, std::vector<int>&, std::ostream*) const override {
    return unused();
  }
  double log_prob_propto(std::vector<double>&, std::vector<int>&, std::ostream*) const override { return unused(); }
  math::var log_prob_propto(std::vector<math::var>&, std::vector<int>&, std::ostream*) const override {
    return unused();
  }
  double log_prob_propto_jacobian(std::vector<double>&, std::vector<int>&, std::ostream*) const override {
    return unused();
  }
  math::var log_prob_propto_jacobian(std::vector<math::var>&, std::vector<int>&, std::ostream*) const override {
    return unused();
  }
  void write_array(stan::rng_t&, std::vector<double>&, std::vector<int>&, std::vector<double>&, bool, bool,
                   std::ostream*) const override {
    unused();
  }
  void unconstrain_array(const std::vector<double>&, std::vector<double>&, std::ostream*) const override { unused(); }

 protected:
  static double unused() { throw std::logic_error("this function of the program was not compiled"); }
};

// Writes what follows from the parameters.
template <typename M>
class pathtemp_written : public pathtemp_unused {
 public:
  using pathtemp_unused::pathtemp_unused;

  void write_array(stan::rng_t& rng, Eigen::VectorXd& theta, Eigen::VectorXd& values, bool transformed, bool generated,
                   std::ostream* messages) const override {
    model().write_array(rng, theta, values, transformed, generated, messages);
  }

 protected:
  const M& model() const { return static_cast<const M&>(*this); }
};

// A program with a density.
template <typename M>
class pathtemp_density_base : public pathtemp_written<M> {
 public:
  using Vars = pathtemp_unused::Vars;
  using pathtemp_written<M>::pathtemp_written;
  using pathtemp_written<M>::model;

  double log_prob(Eigen::VectorXd& theta, std::ostream* messages) const override {
    return model().template log_prob<false, false>(theta, messages);
  }
  math::var log_prob(Vars& theta, std::ostream* messages) const override {
    return model().template log_prob<false, false>(theta, messages);
  }
  double log_prob_jacobian(Eigen::VectorXd& theta, std::ostream* messages) const override {
    return model().template log_prob<false, true>(theta, messages);
  }
  math::var log_prob_jacobian(Vars& theta, std::ostream* messages) const override {
    return model().template log_prob<false, true>(theta, messages);
  }
  void unconstrain_array(const Eigen::VectorXd& constrained, Eigen::VectorXd& theta,
                         std::ostream* messages) const override {
    model().unconstrain_array(constrained, theta, messages);
  }
};

// A program that draws, by its generated quantities alone.
template <typename M>
class pathtemp_draws_base : public pathtemp_written<M> {
 public:
  using Vars = pathtemp_unused::Vars;
  using pathtemp_written<M>::pathtemp_written;

  double log_prob(Eigen::VectorXd&, std::ostream*) const override { return this->unused(); }
  math::var log_prob(Vars&, std::ostream*) const override { return this->unused(); }
  double log_prob_jacobian(Eigen::VectorXd&, std::ostream*) const override { return this->unused(); }
  math::var log_prob_jacobian(Vars&, std::ostream*) const override { return this->unused(); }
  void unconstrain_array(const Eigen::VectorXd&, Eigen::VectorXd&, std::ostream*) const override { this->unused(); }
};

}  // namespace model
}  // namespace stan
