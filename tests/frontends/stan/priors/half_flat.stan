// improper: sigma
// kept: mu
data { int N; vector[N] y; real m; real<lower=0> s; }
parameters { real mu; real<lower=0> sigma; }
model {
  mu ~ normal(m, s); // prior
  y ~ normal(mu, sigma);
}
