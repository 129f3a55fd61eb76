// improper: mu
data { int N; vector[N] y; }
parameters { real<offset=3, multiplier=10> mu; real<lower=0> s; }
model {
  s ~ exponential(1); // prior
  y ~ normal(mu, s);
}
