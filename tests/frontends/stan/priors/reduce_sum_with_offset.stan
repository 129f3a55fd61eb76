// draws
functions {
  real partial_sum_lpmf(array[] int s, int start, int end, vector x, real a, real b) {
    return poisson_log_lupmf(s | a + b * x[start : end]);
  }
}
data { int N; array[N] int y; vector[N] x; }
parameters { real<offset=1, multiplier=2> a; real b_raw; vector[3] u; }
transformed parameters { real b = 0.5 * b_raw; }
model {
  a ~ normal(1, 2); // prior
  b_raw ~ std_normal(); // prior
  u ~ normal(0, 1); // prior
  target += reduce_sum(partial_sum_lupmf, y, 5, x, a + u[1], b);
}
