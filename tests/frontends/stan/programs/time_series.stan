data { int T; vector[T] y; }
parameters { real<lower=-1, upper=1> phi; real<lower=0> sigma; vector[T] x; }
model {
  x[1] ~ normal(0, sigma / sqrt(1 - square(phi)));
  x[2:T] ~ normal(phi * x[1:(T - 1)], sigma);
  sigma ~ exponential(1); y ~ normal(x, 0.3);
}
alternative model {
  x[1] ~ normal(0, sigma / sqrt(1 - square(phi)));
  x[2:T] ~ normal(phi * x[1:(T - 1)], sigma);
  sigma ~ exponential(1);
}
