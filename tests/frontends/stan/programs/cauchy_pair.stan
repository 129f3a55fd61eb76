data {
  real y;
}
parameters {
  real theta;
}
model {
  y ~ cauchy(theta, 0.2);
  -y ~ cauchy(theta, 0.2);
}
alternative model {
  theta ~ normal(0, 5);
}
