// draws
data { int N; vector[N] x_seen; vector[N] y; real<lower=0> tau; }
parameters { vector[N] x; real m; real<lower=0> s; real b; }
model {
  m ~ normal(0, 3); // prior
  s ~ exponential(1); // prior
  b ~ normal(0, 1); // prior
  x ~ normal(m, s); // prior
  x ~ normal(x_seen, tau);
  y ~ normal(b * x, 1);
}
