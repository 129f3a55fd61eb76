// density
data { int J; vector[J] y; vector[J] se; }
parameters { real mu; real<lower=0> tau; vector<multiplier=tau>[J] theta; vector[J] z; }
transformed parameters { vector[J] phi = mu + tau * z; }
model {
  // to_vector(z) ~ cauchy(0, 1);
  [mu, tau] ~ normal(0, 5); // prior
  theta ~ normal(0, tau); // prior
  z ~ std_normal(); // prior
  y ~ normal(phi + theta, se);
}
