// draws
data { int T; vector[T] y; }
parameters { vector[T] x; real<lower=-1, upper=1> rho; real<lower=0> q; real<lower=0> r; }
model {
  rho ~ normal(0.5, 0.5); // prior
  q ~ normal(0, 1); // prior
  r ~ normal(0, 1); // prior
  x[1] ~ normal(0, q / sqrt(1 - rho ^ 2)); // prior
  x[2 : T] ~ normal(rho * x[1 : (T - 1)], q); // prior
  y ~ normal(x, r);
}
