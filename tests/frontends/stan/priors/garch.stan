// improper: mu, a0
data { int T; array[T] real y; real<lower=0> s1; }
parameters { real mu; real<lower=0> a0; real<lower=0, upper=1> a1; real<lower=0, upper=(1 - a1)> b1; }
model {
  array[T] real s;
  s[1] = s1;
  for (t in 2 : T) s[t] = sqrt(a0 + a1 * square(y[t - 1] - mu) + b1 * square(s[t - 1]));
  y ~ normal(mu, s);
}
// uniform: a1, b1
