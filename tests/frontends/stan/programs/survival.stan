data { int N; vector<lower=0>[N] t; array[N] int<lower=0,upper=1> event; }
parameters { real<lower=0> shape; real<lower=0> scale; }
model {
  shape ~ gamma(2, 1); scale ~ gamma(2, 1);
  for (n in 1:N) target += event[n] ? weibull_lpdf(t[n] | shape, scale) : weibull_lccdf(t[n] | shape, scale);
}
alternative model { shape ~ gamma(2, 1); scale ~ gamma(2, 1); }
