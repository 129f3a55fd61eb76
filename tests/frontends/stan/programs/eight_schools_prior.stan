data {
  int<lower=0> J;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  target += log(2);
  theta ~ normal(mu, tau);
}
