// draws
functions {
  vector decay(real t, vector z, real k) { return -k * z; }
}
data { int N; array[N] real ts; vector[N] y; }
parameters { real<lower=0> k; real<lower=0> z0; real<lower=0> sigma; }
transformed parameters {
  array[N] vector[1] z = ode_rk45(decay, [z0]', 0, ts, k);
}
model {
  k ~ lognormal(-1, 1); // prior
  z0 ~ normal(5, 2); // prior
  sigma ~ exponential(1); // prior
  for (n in 1 : N) y[n] ~ lognormal(log(z[n, 1]), sigma);
}
