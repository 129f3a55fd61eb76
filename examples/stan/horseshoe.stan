// Regularised horseshoe regression with a logit link (lambda = 1) and a probit link (lambda = 0): both models, and all
// between them, in one run. Non-centred, as in the paper.
data {
  int<lower=0> n;
  int<lower=0> D;
  matrix[n, D] X;
  array[n] int<lower=0, upper=1> y;
}
transformed data {
  real slab_scale = 5;
  real slab_df = 4;
  real tau0 = 2 / ((D - 1) * sqrt(n));
}
parameters {
  vector[D] z;
  vector<lower=0>[D] lambda;
  real<lower=0> tau;
  real<lower=0> caux;
}
transformed parameters {
  vector[D] beta;
  {
    real c2 = square(slab_scale) * caux;
    vector[D] lambda2 = square(lambda);
    beta = tau * z .* sqrt(c2 * lambda2 ./ (c2 + square(tau) * lambda2));
  }
}
model {
  z ~ std_normal();
  lambda ~ cauchy(0, 1);
  tau ~ cauchy(0, tau0);
  caux ~ inv_gamma(0.5 * slab_df, 0.5 * slab_df);
  y ~ bernoulli_logit(X * beta);
}
alternative model {
  vector[n] eta = X * beta;
  z ~ std_normal();
  lambda ~ cauchy(0, 1);
  tau ~ cauchy(0, tau0);
  caux ~ inv_gamma(0.5 * slab_df, 0.5 * slab_df);
  y ~ bernoulli_logit(0.07056 * eta .^ 3 + 1.5976 * eta); // Phi_approx(eta), without its underflow
}
