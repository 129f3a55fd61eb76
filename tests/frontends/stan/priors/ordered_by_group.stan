// draws
data { int N; int G; array[N] int<lower=1, upper=4> y; array[N] int g; vector[N] x; }
parameters { array[G] ordered[3] c; real b; real<lower=0> spread; }
model {
  spread ~ exponential(1); // prior
  for (j in 1 : G) c[j] ~ normal(0, 2 * spread); // prior
  b ~ normal(0, 1); // prior
  for (n in 1 : N) y[n] ~ ordered_logistic(b * x[n], c[g[n]]);
}
