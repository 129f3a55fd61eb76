// Eight schools, centred: a funnel in (mu, tau, theta), tempered from prior to posterior. The prior is normalised,
// so log z(1) - log z(0) is the log marginal likelihood, -31.3113.
data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5) T[0, ];
  theta ~ normal(mu, tau);
  y ~ normal(theta, sigma);
}
alternative model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5) T[0, ];
  theta ~ normal(mu, tau);
}
generated quantities {
  array[J] real y_new = normal_rng(theta, sigma);
}
