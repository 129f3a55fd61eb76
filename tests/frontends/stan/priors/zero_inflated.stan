// draws
data { int N; array[N] int y; }
parameters { real<lower=0, upper=1> theta; real<lower=0> lambda; }
model {
  lambda ~ gamma(2, 0.1); // prior
  for (n in 1 : N) {
    if (y[n] == 0)
      target += log_sum_exp(bernoulli_lpmf(1 | theta), bernoulli_lpmf(0 | theta) + poisson_lpmf(0 | lambda));
    else
      target += bernoulli_lpmf(0 | theta) + poisson_lpmf(y[n] | lambda);
  }
}
// uniform: theta
