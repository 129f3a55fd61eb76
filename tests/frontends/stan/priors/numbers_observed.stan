// draws
parameters { real<lower=0, upper=1> p; real<lower=0> rate; vector[2] x; }
model {
  p ~ beta(2, 3); // prior
  7 ~ binomial(20, p);
  rate ~ gamma(2, 1); // prior
  target += poisson_lpmf({3, 4} | rate);
  x ~ normal(0, 1); // prior
  [0.2, -0.1]' ~ normal(x, 0.5);
  0 ~ normal(sum(x), 0.1);
}
