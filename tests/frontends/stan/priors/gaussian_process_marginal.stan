// draws
data { int N; array[N] real x; vector[N] y; }
parameters { real<lower=0> rho; real<lower=0> alpha; real<lower=0> sigma; }
model {
  matrix[N, N] K = gp_exp_quad_cov(x, alpha, rho);
  rho ~ inv_gamma(5, 5); // prior
  alpha ~ std_normal(); // prior
  sigma ~ std_normal(); // prior
  for (n in 1 : N) K[n, n] += square(sigma);
  y ~ multi_normal_cholesky(rep_vector(0, N), cholesky_decompose(K));
}
