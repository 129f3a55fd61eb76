// Two observations at +y and -y of one location: the posterior is two narrow peaks that plain MCMC cannot cross.
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
alternative model { // the base, from which the path starts
  theta ~ normal(0, 5);
}
