// draws
data { int J; array[J] vector[2] y; }
parameters {
  vector[2] mu; vector<lower=0>[2] tau; corr_matrix[2] Omega; array[J] vector[2] b;
}
transformed parameters { cov_matrix[2] Sigma = quad_form_diag(Omega, tau); }
model {
  mu ~ normal(0, 1); // prior
  tau ~ lognormal(0, 1); // prior
  Omega ~ lkj_corr(2); // prior
  b ~ multi_normal(mu, Sigma); // prior
  for (j in 1 : J) y[j] ~ normal(b[j], 1);
}
