// draws
data { int N; int K; vector[N] Y; matrix[N, K] X; int prior_only; }
parameters { vector[K] b; real Intercept; real<lower=0> sigma; }
transformed parameters {
  real lprior = 0;
  lprior += normal_lpdf(b | 0, 2);
  lprior += student_t_lpdf(Intercept | 3, 0, 2.5);
  lprior += student_t_lpdf(sigma | 3, 0, 2.5) - 1 * student_t_lccdf(0 | 3, 0, 2.5);
}
model {
  if (!prior_only) {
    vector[N] mu = rep_vector(0.0, N);
    mu += Intercept;
    target += normal_id_glm_lpdf(Y | X, mu, b, sigma);
  }
  target += lprior; // prior
}
