// density
data { int N; vector[N] y; }
parameters { vector[N] theta; real<lower=0, upper=1> p; }
model {
  p ~ beta(1, 9); // prior
  for (n in 1 : N)
    target += log_mix(p, normal_lpdf(theta[n] | 0, 3), normal_lpdf(theta[n] | 0, 0.1)); // prior
  y ~ normal(theta, 1);
}
