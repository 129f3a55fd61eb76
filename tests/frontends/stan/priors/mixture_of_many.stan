// draws
data { int K; int N; vector[N] y; }
parameters { simplex[K] w; ordered[K] mu; vector<lower=0>[K] sigma; }
model {
  vector[K] log_w = log(w);
  sigma ~ lognormal(0, 2); // prior
  mu ~ normal(0, 10); // prior
  for (n in 1 : N) {
    vector[K] lps = log_w;
    for (k in 1 : K) lps[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(lps);
  }
}
// uniform: w
