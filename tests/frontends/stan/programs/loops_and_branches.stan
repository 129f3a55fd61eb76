data { int N; vector[N] y; }
transformed data { array[N] int order; for (n in 1:N) { order[n] = N - n + 1; } }
parameters { real mu; }
model {
  int i = 1;
  while (i <= N) { if (i % 2 == 0) { i += 1; continue; } y[order[i]] ~ normal(mu, 1); if (i > 5) break; i += 1; }
  for (v in y) v ~ normal(mu, 2);
  mu ~ normal(0, 1);
}
alternative model { mu ~ normal(0, 3); }
