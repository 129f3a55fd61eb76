// density
data { int N; array[N] vector[3] y; }
parameters { unit_vector[3] u; real<lower=0> s; }
model {
  profile("prior") { s ~ normal(0, 1); } // prior
  profile("likelihood") { for (n in 1 : N) y[n] ~ normal(u, s); }
}
// uniform: u
