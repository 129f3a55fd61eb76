// draws
data { int T; vector[T] y; }
parameters { real mu; real<lower=-1, upper=1> phi; real<lower=0> s; vector[T] h; }
model {
  phi ~ uniform(-1, 1); // prior
  s ~ cauchy(0, 5); // prior
  mu ~ cauchy(0, 10); // prior
  h[1] ~ normal(mu, s / sqrt(1 - phi * phi)); // prior
  h[2 : T] ~ normal(mu + phi * (h[1 : (T - 1)] - mu), s); // prior
  y ~ normal(0, exp(h / 2));
}
