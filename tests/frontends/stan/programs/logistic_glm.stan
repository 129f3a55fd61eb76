data { int n; int d; matrix[n, d] X; array[n] int<lower=0, upper=1> y; }
parameters { real alpha; vector[d] beta; }
model { alpha ~ normal(0, 2); beta ~ normal(0, 1); y ~ bernoulli_logit_glm(X, alpha, beta); }
alternative model { alpha ~ normal(0, 2); beta ~ normal(0, 1); }
