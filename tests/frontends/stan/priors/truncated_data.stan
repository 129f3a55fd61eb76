// draws
data { int N; vector<lower=0>[N] y; int M; real U; }
parameters { real mu; real<lower=0> sigma; }
model {
  mu ~ normal(0, 5) T[-3, ]; // prior
  sigma ~ lognormal(0, 1) T[0.1, 20]; // prior
  for (n in 1 : N)
    y[n] ~ normal(mu, sigma) T[0, ];
  target += M * (normal_lccdf(U | mu, sigma));
}
