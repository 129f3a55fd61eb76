// draws
data { int N; int K; matrix[N, K] X; vector[N] y; real<lower=0> prior_scale; }
parameters { real alpha; vector[K] beta; real<lower=0> sigma; }
model {
  alpha ~ normal(mean(y), prior_scale); // prior
  beta ~ normal(0, prior_scale); // prior
  sigma ~ normal(0, 1); // prior
  y ~ normal_id_glm(X, alpha, beta, sigma);
}
