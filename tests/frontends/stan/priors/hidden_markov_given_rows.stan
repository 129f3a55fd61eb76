// draws
data { int N; array[N] int y; matrix<lower=0>[2, 2] alpha; matrix[2, 4] emission; }
parameters { simplex[2] first; simplex[2] second; }
transformed parameters {
  array[2] simplex[2] Gamma;
  Gamma[1] = first;
  Gamma[2] = second;
}
model {
  for (k in 1 : 2) target += dirichlet_lpdf(Gamma[k] | alpha[k]'); // prior
  for (t in 2 : N) target += log(Gamma[y[t - 1], y[t]]);
}
