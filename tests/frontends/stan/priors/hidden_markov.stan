// draws
data { int N; array[N] real y; }
parameters { array[2] simplex[2] Gamma; ordered[2] mu; }
model {
  // uniform over the rows of Gamma
  target += normal_lpdf(mu[1] | -1, 1); // prior
  target += normal_lpdf(mu[2] | 1, 1); // prior
  array[2] real acc;
  array[2] real old = {normal_lpdf(y[1] | mu[1], 1), normal_lpdf(y[1] | mu[2], 1)};
  for (t in 2 : N) {
    for (k in 1 : 2)
      acc[k] = log_sum_exp(old[1] + log(Gamma[1, k]), old[2] + log(Gamma[2, k])) + normal_lpdf(y[t] | mu[k], 1);
    old = acc;
  }
  target += log_sum_exp(old);
}
// uniform: Gamma
