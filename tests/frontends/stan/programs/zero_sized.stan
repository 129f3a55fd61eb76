data { int K; vector[K] y; }
parameters { vector[K] absent; real x; array[0] simplex[3] none; }
model { x ~ normal(0, 1); absent ~ normal(0, 1); y ~ normal(absent, 1); }
alternative model { x ~ student_t(4, 0, 2); absent ~ normal(0, 2); }
generated quantities { vector[K] g = absent; }
