// draws
// uniform: rho
functions {
  real copula_lpdf(matrix q, real rho) {
    int N = rows(q);
    real r2 = square(rho);
    return -0.5 * N * log1m(r2)
           - sum((r2 * (square(q[ : , 1]) + square(q[ : , 2])) - 2 * rho * (q[ : , 1] .* q[ : , 2])) / (2 * (1 - r2)));
  }
}
data { int N; vector<lower=0>[N] a; vector[N] b; }
parameters { real<lower=0> rate; real mu; real<lower=0> s; real<lower=-1, upper=1> rho; }
model {
  matrix[N, 2] q;
  rate ~ lognormal(0, 1); // prior
  mu ~ normal(0, 5); // prior
  s ~ normal(0, 3); // prior
  a ~ exponential(rate);
  b ~ normal(mu, s);
  for (n in 1 : N) {
    q[n, 1] = inv_Phi(exponential_cdf(a[n] | rate));
    q[n, 2] = (b[n] - mu) / s;
  }
  target += copula_lpdf(q | rho);
}
