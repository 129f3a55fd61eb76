// draws
data { int G; int N; array[G] int len; vector[N] y; }
parameters { vector[G] mu; real<lower=0> tau; real<lower=0> s; }
model {
  int from = 1;
  tau ~ student_t(4, 0, 1); // prior
  s ~ student_t(4, 0, 1); // prior
  mu ~ normal(0, tau); // prior
  for (g in 1 : G) {
    segment(y, from, len[g]) ~ normal(mu[g], s);
    from += len[g];
  }
}
