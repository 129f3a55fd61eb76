// draws
functions {
  real part(array[] int y, int start, int end, real lambda) { return poisson_lpmf(y | lambda); }
}
data { int N; array[N] int y; }
parameters { real<lower=0> lambda; }
model {
  lambda ~ gamma(1, 1); // prior
  target += reduce_sum(part, y, 1, lambda);
}
