// draws
data { int N; int D; matrix[N, D] Y; }
parameters { vector[D] lambda; vector[N] f; vector<lower=0>[D] psi; }
model {
  lambda ~ normal(0, 1); // prior
  f ~ std_normal(); // prior
  psi ~ exponential(1); // prior
  for (d in 1 : D)
    Y[ : , d] ~ normal(lambda[d] * f, psi[d]);
}
