data {
  int<lower=1> J;
  array[2, 3] int k;
  complex z;
  tuple(int, array[2] real) pair;
  array[0] real nothing;
  matrix[0, 2] empty;
}
parameters {
  real plain;
  real<lower=2> above;
  real<upper=-1> below;
  real<lower=-2, upper=3> between;
  real<offset=1, multiplier=2> shifted;
  vector<lower=0>[3] positive;
  row_vector[2] row;
  matrix[2, 3] M;
  array[2] vector[3] vectors;
  array[2, 2] real<lower=0, upper=1> grid;
  array[J] simplex[3] shares;
  ordered[3] sorted;
  positive_ordered[2] rising;
  unit_vector[3] direction;
  corr_matrix[3] R;
  cov_matrix[2] S;
  cholesky_factor_corr[3] L;
  cholesky_factor_cov[2] C;
  array[2] matrix[2, 2] Ms;
}
transformed parameters {
  array[2] matrix[2, 3] twice = {2 * M, -M};
}
model {
  plain ~ normal(pair.2[1], 1);
  above ~ lognormal(0, 1);
  below ~ normal(-2, 1);
  between ~ normal(0, 2);
  shifted ~ normal(get_real(z), 2);
  positive ~ gamma(2, 1);
  row ~ normal(0, 1);
  to_vector(M) ~ normal(0, 1 + J);
  for (j in 1:2) vectors[j] ~ student_t(5, k[j, 3], 1);
  for (j in 1:2) grid[j] ~ beta(2, 3);
  for (j in 1:J) shares[j] ~ dirichlet([1.5, 2, 2.5]');
  sorted ~ normal(0, 2);
  rising ~ exponential(1);
  direction ~ von_mises(0, 1);
  R ~ lkj_corr(2);
  S ~ wishart(4, diag_matrix([1, 2]'));
  L ~ lkj_corr_cholesky(3);
  to_vector(C) ~ normal(0, 2);
  for (j in 1:2) to_vector(Ms[j]) ~ normal(j, 1);
}
generated quantities {
  complex gz = to_complex(plain, above);
  tuple(real, vector[2]) gt = (plain, [1, 2]');
  array[2] tuple(int, array[3] real) gat = {(1, {1, 2, 3}), (2, {4, 5, 6})};
  int count = poisson_rng(3);
  array[2, 3] int table = k;
}
