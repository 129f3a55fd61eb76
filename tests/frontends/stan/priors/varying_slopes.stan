// draws
data { int J; int N; array[N] int g; vector[N] x; vector[N] y; }
parameters {
  cholesky_factor_corr[2] L; vector<lower=0>[2] tau; matrix[2, J] z; real<lower=0> sigma;
}
transformed parameters { matrix[2, J] b = diag_pre_multiply(tau, L) * z; }
model {
  L ~ lkj_corr_cholesky(2); // prior
  tau ~ normal(0, 1); // prior
  to_vector(z) ~ std_normal(); // prior
  sigma ~ gamma(2, 1); // prior
  for (n in 1 : N) y[n] ~ normal(b[1, g[n]] + b[2, g[n]] * x[n], sigma);
}
