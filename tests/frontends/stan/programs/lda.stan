data { int V; int M; int N; int K; array[N] int w; array[N] int doc; }
parameters { array[M] simplex[K] theta; array[K] simplex[V] phi; }
model {
  for (m in 1:M) theta[m] ~ dirichlet(rep_vector(0.5, K));
  for (k in 1:K) phi[k] ~ dirichlet(rep_vector(0.5, V));
  for (n in 1:N) {
    vector[K] g;
    for (k in 1:K) g[k] = log(theta[doc[n], k]) + log(phi[k, w[n]]);
    target += log_sum_exp(g);
  }
}
alternative model {
  for (m in 1:M) theta[m] ~ dirichlet(rep_vector(0.5, K));
  for (k in 1:K) phi[k] ~ dirichlet(rep_vector(0.5, V));
}
