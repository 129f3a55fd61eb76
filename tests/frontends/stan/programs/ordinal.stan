alternative model { b ~ normal(0, 1); c ~ normal(0, 3); }
data { int N; int K; array[N] int y; vector[N] x; }
parameters { real b; ordered[K - 1] c; }
model { b ~ normal(0, 1); c ~ normal(0, 3); y ~ ordered_logistic(b * x, c); }
