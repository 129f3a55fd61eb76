// draws
data { int J; int N; matrix[J, 2] u; array[N] int<lower=1, upper=J> g; vector[N] y; }
parameters { vector[2] gamma; real<lower=0> tau; real<lower=0> sigma; vector[J] alpha; }
model {
  gamma ~ normal(0, 2); // prior
  tau ~ exponential(1); // prior
  sigma ~ exponential(1); // prior
  for (j in 1 : J)
    alpha[j] ~ normal(u[j] * gamma, tau); // prior
  y ~ normal(alpha[g], sigma);
}
