// draws
data { int N; array[N] real x; vector[N] y; }
parameters { real<lower=0> rho; real<lower=0> alpha; real<lower=0> sigma; vector[N] eta; }
transformed parameters {
  vector[N] f;
  {
    matrix[N, N] L = cholesky_decompose(add_diag(gp_exp_quad_cov(x, alpha, rho), 1e-9));
    f = L * eta;
  }
}
model {
  rho ~ inv_gamma(5, 5); // prior
  alpha ~ std_normal(); // prior
  sigma ~ std_normal(); // prior
  eta ~ std_normal(); // prior
  y ~ normal(f, sigma);
}
