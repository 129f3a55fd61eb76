// density
data { int N; vector[N] y; real m0; real<lower=0> s0; }
parameters { real mu; real<lower=0> s; real x; }
model {
  mu ~ normal(m0, s0); // prior
  s ~ exponential(1); // prior
  target += -0.25 * x ^ 4; // prior
  y ~ normal(mu + x, s);
}
