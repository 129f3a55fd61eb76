// draws
data { int N; vector[N] y; real<lower=0> s0; }
parameters { real mu; real<lower=0> s; }
model {
  real lp;
  lp = 0;
  lp += normal_lpdf(mu | 0, s0); // prior
  lp += cauchy_lpdf(s | 0, 1); // prior
  for (n in 1 : N)
    lp += normal_lpdf(y[n] | mu, s);
  target += lp;
}
