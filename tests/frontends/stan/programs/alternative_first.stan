alternative model { mu ~ normal(0, 10); sigma ~ exponential(1); }
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 1); sigma ~ exponential(2); y ~ normal(mu, sigma); }
