// improper: mu, tau
data { int J; vector[J] y; vector[J] se; }
parameters { real mu; real<lower=0> tau; vector[J] theta; }
model {
  theta ~ normal(mu, tau); // prior
  y ~ normal(theta, se);
}
