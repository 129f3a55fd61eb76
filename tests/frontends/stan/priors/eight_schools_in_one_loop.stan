// draws
data { int J; vector[J] y; vector[J] se; }
parameters { real mu; real<lower=0> tau; vector[J] theta; }
model {
  mu ~ normal(0, 5); // prior
  tau ~ cauchy(0, 5); // prior
  for (j in 1 : J) {
    theta[j] ~ normal(mu, tau); // prior
    y[j] ~ normal(theta[j], se[j]);
  }
}
