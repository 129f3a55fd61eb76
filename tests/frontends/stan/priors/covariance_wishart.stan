// draws
data { int N; int K; array[N] vector[K] y; }
parameters { vector[K] mu; cov_matrix[K] Sigma; }
model {
  Sigma ~ inv_wishart(K + 2, identity_matrix(K)); // prior
  mu ~ multi_normal(rep_vector(0, K), Sigma); // prior
  y ~ multi_normal(mu, Sigma);
}
