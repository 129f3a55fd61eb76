data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  target += log(2); // half-Cauchy
  theta ~ normal(mu, tau);
  y ~ normal(theta, sigma);
}
alternative model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  target += log(2);
  theta ~ normal(mu, tau);
}
generated quantities {
  vector[J] y_new = to_vector(normal_rng(theta, sigma));
}
