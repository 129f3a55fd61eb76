data { int n; int d; matrix[n, d] X; array[n] int y; real<lower=0> tau0; }
parameters { vector[d] z; vector<lower=0>[d] lambda; real<lower=0> tau; real<lower=0> caux; }
transformed parameters {
  real c = 5 * sqrt(caux);
  vector[d] lt = sqrt(square(c) * square(lambda) ./ (square(c) + square(tau) * square(lambda)));
  vector[d] beta = z .* lt * tau;
}
model {
  z ~ std_normal(); lambda ~ cauchy(0, 1); tau ~ cauchy(0, tau0); caux ~ inv_gamma(2, 2);
  y ~ bernoulli_logit(X * beta);
}
alternative model {
  z ~ std_normal(); lambda ~ cauchy(0, 1); tau ~ cauchy(0, tau0); caux ~ inv_gamma(2, 2);
  y ~ bernoulli(Phi_approx(X * beta));
}
