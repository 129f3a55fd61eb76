data { int J; array[J] vector[2] y; }
parameters { cholesky_factor_corr[2] L; vector<lower=0>[2] sigma; vector[2] mu; matrix[2, J] z; }
transformed parameters { matrix[2, J] b = rep_matrix(mu, J) + diag_pre_multiply(sigma, L) * z; }
model {
  L ~ lkj_corr_cholesky(2); sigma ~ exponential(1); mu ~ normal(0, 2); to_vector(z) ~ std_normal();
  for (j in 1:J) y[j] ~ normal(b[, j], 0.5);
}
alternative model { L ~ lkj_corr_cholesky(2); sigma ~ exponential(1); mu ~ normal(0, 2); to_vector(z) ~ std_normal(); }
generated quantities { corr_matrix[2] R = multiply_lower_tri_self_transpose(L); }
