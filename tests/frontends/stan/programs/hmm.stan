data { int N; vector[N] y; }
parameters { array[2] simplex[2] Gamma; ordered[2] mu; }
model {
  matrix[2, 2] G; matrix[2, N] log_omega;
  for (k in 1:2) G[k] = Gamma[k]';
  for (n in 1:N) for (k in 1:2) log_omega[k, n] = normal_lpdf(y[n] | mu[k], 1);
  mu ~ normal(0, 3);
  target += hmm_marginal(log_omega, G, [0.5, 0.5]');
}
alternative model { mu ~ normal(0, 3); for (k in 1:2) Gamma[k] ~ dirichlet([1, 1]'); }
