// draws
data { int N; int M; vector[N] y; }
parameters { real mu; real<lower=0> sigma; vector[M] y_missing; }
model {
  mu ~ normal(0, 1); // prior
  sigma ~ gamma(2, 2); // prior
  y ~ normal(mu, sigma);
  y_missing ~ normal(mu, sigma); // prior
}
