// density
functions {
  real icar_lpdf(vector phi, array[] int a, array[] int b) { return -0.5 * dot_self(phi[a] - phi[b]); }
}
data { int N; int E; array[E] int a; array[E] int b; array[N] int y; }
parameters { real alpha; real<lower=0> s; vector[N] phi; }
model {
  phi ~ icar(a, b);
  sum(phi) ~ normal(0, 0.001 * N); // prior
  alpha ~ normal(0, 1); // prior
  s ~ normal(0, 1); // prior
  y ~ poisson_log(alpha + s * phi);
}
