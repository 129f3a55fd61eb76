// improper
data { int N; vector[N] y; }
parameters { tuple(real, real<lower=0>) ms; complex z; }
model {
  ms.1 ~ normal(0, 3);
  ms.2 ~ exponential(1);
  get_real(z) ~ normal(0, 1);
  get_imag(z) ~ normal(0, 1);
  y ~ normal(ms.1 + abs(z), ms.2);
}
