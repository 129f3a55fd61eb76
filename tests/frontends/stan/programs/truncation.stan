data { int N; vector[N] y; int k; }
parameters { real mu; real<lower=0> s; real<lower=0> lambda; }
model {
  mu ~ normal(0, 2) T[-3, ];
  s ~ cauchy(0, 1) T[0, ];
  y ~ normal(mu, s) T[-5, 5];
  y ~ normal(to_vector({mu, s, lambda}), 2) T[-6, ];
  k ~ binomial(12, inv_logit(mu)) T[1, ];
  lambda ~ gamma(2, 2);
  k ~ poisson(lambda) T[1, 9];
}
alternative model { mu ~ normal(0, 2); s ~ student_t(3, 0, 1) T[0, 10]; lambda ~ gamma(2, 2) T[ , 20]; }
