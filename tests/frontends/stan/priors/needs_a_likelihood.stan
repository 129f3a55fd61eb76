// improper
functions {
  real log_likelihood_lp(vector y, real mu) {
    real total = normal_lpdf(y | mu, 1);
    target += total;
    return total;
  }
}
data { int N; vector[N] y; }
parameters { real mu; real s; }
model {
  mu ~ normal(0, 1);
  real total = log_likelihood_lp(y, mu);
  s ~ normal(total, 1);
}
