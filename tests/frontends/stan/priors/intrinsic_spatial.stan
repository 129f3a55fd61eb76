// density
data { int N; int E; array[E] int a; array[E] int b; array[N] int y; }
parameters { vector[N] phi; real<lower=0> s; }
model {
  target += -0.5 * dot_self(phi[a] - phi[b]);
  sum(phi) ~ normal(0, 0.001 * N); // prior
  s ~ std_normal(); // prior
  y ~ poisson_log(s * phi);
}
