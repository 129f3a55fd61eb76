/* a comment with model { and } and alternative model { and "quote */
functions {
  // } unbalanced model {
  real shifted_lpdf(real y, real model_scale) { return normal_lpdf(y | 0, model_scale); }
  void bump_lp(real z) { target += -0.5 * square(z); /* } */ }
}
data { // data {
  int<lower=0> N; array[N] real y; // it's an apostrophe
  #include extra_data.stan
}
transformed data { real ybar = mean(y); real noise = normal_rng(0, 1e-3); }
parameters {
  real mu; real<lower=0> tau; simplex[3] w; ordered[2] cut; cholesky_factor_corr[3] L;
}
transformed parameters {
  real lsd = log(tau);
  if (tau > 1e6) reject("tau too big }{ model ", tau);
}
model {
  vector[3] lp; // local declaration
  real s = tau + 1;
  profile("inner {") { lp[1] = normal_lpdf(mu | noise, s); }
  for (k in 2:3) lp[k] = shifted_lpdf(mu | 1.0 * k);
  bump_lp(mu);
  target += log_sum_exp(log(w) + lp);
  y ~ normal(mu, tau);
  tau ~ lognormal(0, 1); cut ~ normal(0, 3); L ~ lkj_corr_cholesky(2);
  if (0) { print("}", target()); }
}
alternative /* odd */ model
{
  real s = 3; // same name as in model, other scope
  vector[2] lp = [1, 2]';
  mu ~ normal(ybar, s); tau ~ lognormal(0, 1); w ~ dirichlet([1, 2, 3]'); cut ~ normal(0, 3);
  L ~ lkj_corr_cholesky(1.5);
}
generated quantities { real z = normal_rng(mu, tau); array[2] real lp2 = {1.0, 2.0}; }
