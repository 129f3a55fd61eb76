data { int n; array[n] int y; vector[n] x; }
parameters { real beta; }
model { beta ~ normal(0, 2); y ~ bernoulli_logit(beta * x); }
alternative model { beta ~ normal(0, 1); y ~ bernoulli(Phi(beta * x)); }
