// density
data { int N; vector[N] y; }
parameters { real<lower=0> sigma; }
model {
  log(sigma) ~ normal(0, 1); // prior
  target += -log(sigma); // prior
  y ~ normal(0, sigma);
}
