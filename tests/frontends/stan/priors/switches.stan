// draws
data { int N; int wide; int K; vector[N] y; }
parameters { vector[K] b; real<lower=0> s; }
model {
  if (wide) b ~ normal(0, 10); // prior
  else b ~ normal(0, 1); // prior
  s ~ exponential(1); // prior
  if (N > 0) y ~ normal(sum(b), s);
}
