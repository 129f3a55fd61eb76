// improper: gap, late
// kept: q, r
// mixed: 16, 17
data { int T; int n; int m; array[n] int seen; array[m] int unseen; vector[n] y_seen; vector[T] known; }
parameters { vector[m] gap; vector[2] late; real<lower=0> q; real<lower=0> r; }
transformed parameters {
  vector[T] y;
  y[seen] = y_seen;
  for (i in 1 : m)
    y[unseen[i]] = gap[i];
  vector[T + 2] all = append_row(known, late);
}
model {
  q ~ normal(0, 0.5); // prior
  r ~ gamma(3, 6); // prior
  y ~ normal(0, r);
  target += normal_lpdf(all[2:] | all[: T + 1], q);
}
