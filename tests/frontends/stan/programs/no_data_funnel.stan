parameters { real y; vector[9] x; }
model { y ~ normal(0, 3); x ~ normal(0, exp(y / 2)); }
alternative model { y ~ normal(0, 3); x ~ normal(0, 1); }
