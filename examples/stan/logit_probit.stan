// Two models joined by one path: logistic regression (lambda = 1) and probit regression (lambda = 0).
// log z(1) - log z(0) is the log Bayes factor of logit over probit, each with its own prior.
data {
  int<lower=0> n;
  array[n] int<lower=0, upper=1> y;
  vector[n] x;
}
parameters {
  real beta;
}
model {
  beta ~ normal(0, 2);
  y ~ bernoulli_logit(beta * x);
}
alternative model {
  beta ~ normal(0, 1); // may be another prior
  y ~ bernoulli(Phi(beta * x));
}
