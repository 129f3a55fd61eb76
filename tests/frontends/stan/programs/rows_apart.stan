data {
  int N;
  array[N] int<lower=1, upper=2> y;
  matrix<lower=0>[2, 2] alpha;
}
parameters {
  simplex[2] first;
  simplex[2] second;
  positive_ordered[2] scale;
}
transformed parameters {
  array[2] simplex[2] Gamma;
  Gamma[1] = first;
  Gamma[2] = second;
}
model {
  for (k in 1 : 2) {
    target += dirichlet_lpdf(Gamma[k] | alpha[k]');
  }
  scale[1] ~ normal(0, 1);
  scale[2] ~ normal(first[1], 2);
  for (t in 2 : N) {
    target += log(Gamma[y[t - 1], y[t]]) + exponential_lpdf(0.5 | scale[y[t]]);
  }
}
