// draws
data { int N; vector[N] y; }
parameters { real m; real<lower=m> x; real<lower=0> s; }
model {
  m ~ normal(0, 1); // prior
  s ~ normal(0, 1) T[0, ]; // prior
  x ~ normal(m, s); // prior
  y ~ normal(x, 1);
}
