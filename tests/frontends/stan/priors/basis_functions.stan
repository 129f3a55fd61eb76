// draws
data { int N; vector[N] x; vector[N] y; int M; }
transformed data {
  matrix[N, M] PHI;
  for (m in 1 : M) PHI[ : , m] = sin(m * pi() / 6 * (x + 3)) / sqrt(3);
}
parameters { vector[M] b; real<lower=0> ell; real<lower=0> alpha; real<lower=0> sigma; }
transformed parameters {
  vector[M] spd;
  for (m in 1 : M) spd[m] = alpha * sqrt(sqrt(2 * pi()) * ell) * exp(-0.25 * square(ell) * square(m * pi() / 6));
}
model {
  b ~ normal(0, 1); // prior
  ell ~ inv_gamma(3, 2); // prior
  alpha ~ normal(0, 2); // prior
  sigma ~ normal(0, 1); // prior
  y ~ normal(PHI * (spd .* b), sigma);
}
