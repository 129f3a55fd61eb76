// draws
data { int N; vector<lower=0>[N] t; array[N] int<lower=0, upper=1> censored; }
parameters { real<lower=0> shape; real<lower=0> scale; }
model {
  shape ~ gamma(2, 1); // prior
  scale ~ inv_gamma(3, 2); // prior
  for (n in 1 : N) {
    if (censored[n]) target += weibull_lccdf(t[n] | shape, scale);
    else target += weibull_lpdf(t[n] | shape, scale);
  }
}
