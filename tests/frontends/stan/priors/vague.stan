// draws
data { int N; int K; matrix[N, K] X; vector[N] y; }
parameters { vector[K] beta; real<lower=0> sigma; }
model {
  beta ~ normal(0, 1000); // prior
  sigma ~ cauchy(0, 25); // prior
  y ~ normal(X * beta, sigma);
}
