// A mixture of normals without an order on its components: each of the K! relabellings is a mode.
data {
  int<lower=1> K;
  int<lower=0> N;
  vector[N] y;
}
parameters {
  simplex[K] weight;
  vector[K] mu;
  vector<lower=0>[K] sigma;
}
model {
  weight ~ dirichlet(rep_vector(2, K));
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.5);
  for (n in 1 : N) {
    vector[K] lp = log(weight);
    for (k in 1 : K) {
      lp[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    }
    target += log_sum_exp(lp);
  }
}
alternative model {
  weight ~ dirichlet(rep_vector(2, K));
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.5);
}
generated quantities {
  vector[K] ordered_mu = sort_asc(mu);
}
