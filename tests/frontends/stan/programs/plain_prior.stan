// A plain program whose prior has a mass of its own: a half-normal and two ordered means.
data {
  int<lower=1> N;
  vector[N] y;
  real<lower=0> width; // of the prior
}
parameters {
  ordered[2] mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, width);
  sigma ~ normal(0, 1);
  for (n in 1 : N)
    target += log_mix(0.3, normal_lpdf(y[n] | mu[1], sigma), normal_lpdf(y[n] | mu[2], sigma));
}
generated quantities {
  vector[N] log_lik;
  for (n in 1 : N)
    log_lik[n] = log_mix(0.3, normal_lpdf(y[n] | mu[1], sigma), normal_lpdf(y[n] | mu[2], sigma));
}
