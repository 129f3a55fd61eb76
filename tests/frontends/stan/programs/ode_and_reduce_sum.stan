functions {
  vector decay(real t, vector y, real k) { return -k * y; }
  real partial_sum_lpdf(array[] real s, int a, int b, real m) { return normal_lupdf(s | m, 1); }
}
data { int N; array[N] real y; array[3] real ts; }
parameters { real m; real<lower=0> k; }
transformed parameters { array[3] vector[2] sol = ode_rk45(decay, [1.0, 2.0]', 0, ts, k); }
model {
  target += reduce_sum(partial_sum_lupdf, y, 1, m);
  y[1] ~ normal(sol[1, 1], 1);
  k ~ gamma(2, 2);
}
alternative model { m ~ normal(0, 5); k ~ gamma(2, 2); }
