// draws
data { int N; int J; array[N] int<lower=1, upper=J> g; matrix[N, 2] X; vector[N] y; }
parameters {
  matrix[2, J] z;
  cholesky_factor_corr[2] L;
  vector<lower=0>[2] tau;
  row_vector[2] gamma;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[J, 2] beta = rep_matrix(gamma, J) + (diag_pre_multiply(tau, L) * z)';
}
model {
  to_vector(z) ~ std_normal(); // prior
  L ~ lkj_corr_cholesky(2); // prior
  tau ~ cauchy(0, 2.5); // prior
  gamma ~ normal(0, 5); // prior
  sigma ~ exponential(1); // prior
  y ~ normal(rows_dot_product(beta[g], X), sigma);
}
generated quantities {
  corr_matrix[2] Omega = multiply_lower_tri_self_transpose(L);
}
