data { int N; array[N] real y; int M; }
parameters { array[M] real y_missing; real mu; real<lower=0> s; }
transformed parameters { array[N + M] real all = append_array(y, y_missing); }
model { all ~ normal(mu, s); mu ~ normal(0, 3); s ~ normal(0, 2); }
alternative model { mu ~ normal(0, 3); s ~ normal(0, 2); y_missing ~ normal(0, 5); }
