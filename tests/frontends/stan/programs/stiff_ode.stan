functions {
  vector sir(real t, vector y, real beta, real gamma) {
    return [-beta * y[1] * y[2], beta * y[1] * y[2] - gamma * y[2]]';
  }
}
data { int T; array[T] real ts; array[T] int cases; }
parameters { real<lower=0> beta; real<lower=0> gamma; }
model {
  array[T] vector[2] y = ode_bdf(sir, [0.99, 0.01]', 0, ts, beta, gamma);
  beta ~ lognormal(0, 0.5); gamma ~ lognormal(-1, 0.5);
  for (t in 1:T) cases[t] ~ poisson(1000 * fmax(y[t, 2], 1e-9));
}
alternative model { beta ~ lognormal(0, 0.5); gamma ~ lognormal(-1, 0.5); }
