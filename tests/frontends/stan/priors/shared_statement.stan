// improper: mu
// kept: s
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> s; }
model {
  s ~ exponential(1); // prior
  target += normal_lpdf(mu | 0, 1) + normal_lpdf(y | mu, s);
}
// mixed: 7
