// draws
data { int J; vector[J] y; vector[J] sigma; }
parameters { vector[J] theta; real mu; real<lower=0> tau; }
model {
  mu ~ normal(0, 5); // prior
  tau ~ normal(0, 5); // prior
  for (j in 1 : J) theta[j] ~ normal(y[j], sigma[j]);
  theta[1 : J] ~ normal(mu, tau); // prior
}
