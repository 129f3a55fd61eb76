// improper: mu
// kept: tau
data { int J; vector[J] y; vector[J] se; }
parameters { real mu; real<lower=0> tau; vector[J] theta; }
model {
  tau ~ cauchy(0, 5); // prior
  theta ~ normal(mu, tau); // prior
  y ~ normal(theta, se);
}
