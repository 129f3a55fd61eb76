data { int G; int N; array[N] int<lower=1,upper=G> g; array[N] int y; }
parameters { real mu; real<lower=0> tau; vector[G] z; real<lower=0> phi; }
transformed parameters { vector[G] eta = mu + tau * z; }
model { mu ~ normal(0, 2); tau ~ normal(0, 1); z ~ std_normal(); phi ~ gamma(2, 0.1); y ~ neg_binomial_2_log(eta[g], phi); }
alternative model { mu ~ normal(0, 2); tau ~ normal(0, 1); z ~ std_normal(); phi ~ gamma(2, 0.1); }
generated quantities { array[N] int y_new = neg_binomial_2_log_rng(eta[g], phi); }
