// density
functions {
  real own_lpdf(vector x, real s) { return -0.5 * dot_self(x) / s - num_elements(x) * 0.5 * log(s); }
  void more_lp(real s) { target += -s; }
}
data { int N; vector[N] y; }
parameters { vector[N] theta; real<lower=0> s; }
model {
  theta ~ own(s); // prior
  more_lp(s); // prior
  y ~ normal(theta, 1);
}
