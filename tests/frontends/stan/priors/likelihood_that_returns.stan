// draws
functions {
  real log_likelihood_lp(vector y, real mu) {
    real total = normal_lpdf(y | mu, 1);
    target += total;
    return total;
  }
}
data { int N; vector[N] y; }
parameters { real mu; }
model {
  mu ~ normal(0, 1); // prior
  real total = log_likelihood_lp(y, mu);
  if (total < -1e9) reject("far from the data");
  if (y[1] > 0) target += log(0.3);
}
