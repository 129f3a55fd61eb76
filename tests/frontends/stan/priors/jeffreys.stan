// improper: sigma
// kept: mu
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model {
  mu ~ normal(0, 10); // prior
  target += -log(sigma) + normal_lpdf(y | mu, sigma);
}
// mixed: 7
