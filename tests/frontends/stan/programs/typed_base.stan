parameters {
  real mu;
  real<lower=0> tau;
  real<lower=-2, upper=3> between;
  vector<lower=2>[3] above;
  simplex[3] w;
  array[2] simplex[4] shares;
  matrix[2, 3] M;
  array[2] matrix[2, 2] Ms;
  array[2, 3] real<lower=0, upper=1> grid;
  cholesky_factor_corr[3] L;
}
model {
  mu ~ normal(1, 2);
  tau ~ lognormal(0, 1);
  between ~ uniform(-2, 3);
  for (i in 1:3) above[i] ~ normal(i, 2) T[2, ];
  w ~ dirichlet([1, 2, 3]');
  shares[1] ~ dirichlet([1, 2, 3, 4]');
  shares[2] ~ dirichlet([4, 3, 2, 1]');
  for (i in 1:2) for (j in 1:3) M[i, j] ~ normal(i, j);
  for (k in 1:2) for (i in 1:2) for (j in 1:2) Ms[k, i, j] ~ normal(k + 2 * i, j);
  for (i in 1:2) for (j in 1:3) grid[i, j] ~ beta(i, j);
  L ~ lkj_corr_cholesky(1.5);
}
