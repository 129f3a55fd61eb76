// draws
data { int N; int K; matrix[N, K] B; vector[N] y; }
parameters { vector[K] a; real<lower=0> tau; real<lower=0> sigma; }
model {
  a[1] ~ normal(0, 1); // prior
  for (k in 2 : K) a[k] ~ normal(a[k - 1], tau); // prior
  tau ~ normal(0, 1); // prior
  sigma ~ normal(0, 1); // prior
  y ~ normal(B * a, sigma);
}
