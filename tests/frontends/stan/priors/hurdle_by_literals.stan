// draws
data { int N; array[N] int y; }
parameters { real<lower=0, upper=1> theta; real<lower=0> lambda; }
model {
  theta ~ beta(1, 1); // prior
  lambda ~ exponential(0.1); // prior
  for (n in 1 : N) {
    if (y[n] == 0) 1 ~ bernoulli(theta);
    else { 0 ~ bernoulli(theta); y[n] ~ poisson(lambda) T[1, ]; }
  }
}
