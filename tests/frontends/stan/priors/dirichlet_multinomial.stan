// draws
functions {
  real dm_lpmf(array[] int y, vector alpha) {
    real a0 = sum(alpha);
    return lgamma(a0) - lgamma(a0 + sum(y)) + sum(lgamma(alpha + to_vector(y))) - sum(lgamma(alpha))
           + lgamma(sum(y) + 1) - sum(lgamma(to_vector(y) + 1));
  }
}
data { int N; int K; array[N, K] int y; }
parameters { simplex[K] pi; real<lower=0> conc; }
model {
  pi ~ dirichlet(rep_vector(1, K)); // prior
  conc ~ lognormal(1, 1); // prior
  for (n in 1 : N)
    y[n] ~ dm(conc * pi);
}
