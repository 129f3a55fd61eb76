// density
data { int N; int K; matrix[N, K] B; vector[N] y; }
parameters { vector[K] a; real<lower=0> tau; }
model {
  a[1] ~ normal(0, 1); // prior
  target += -0.5 * dot_self(a[2 : ] - a[ : num_elements(a) - 1]) / square(tau) - num_elements(a) * log(tau); // prior
  tau ~ normal(0, 1); // prior
  y ~ normal(B * a, 1);
}
