data { int N; vector[N] y; int K; }
parameters { simplex[K] w; vector[K] mu; vector<lower=0>[K] sigma; }
model {
  w ~ dirichlet(rep_vector(1, K)); mu ~ normal(0, 5); sigma ~ lognormal(0, 1);
  for (n in 1:N) {
    vector[K] lp = log(w);
    for (k in 1:K) lp[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(lp);
  }
}
alternative model { w ~ dirichlet(rep_vector(1, K)); mu ~ normal(0, 5); sigma ~ lognormal(0, 1); }
