// draws
data { int N; array[N] real x; array[N] int y; }
parameters { real<lower=0> rho; vector[N] f; }
model {
  matrix[N, N] K = add_diag(gp_exp_quad_cov(x, 1.0, rho), 1e-6);
  rho ~ gamma(4, 4); // prior
  f ~ multi_normal(rep_vector(0, N), K); // prior
  y ~ poisson_log(f);
}
