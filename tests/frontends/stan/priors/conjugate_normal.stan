// draws
data { int N; vector[N] y; }
parameters { real mu; }
model {
  mu ~ normal(1, 3); // prior
  y ~ normal(mu, 2);
}
