functions {
  real energy(real x) { return square(x); }
  real energy(vector x) { return dot_self(x); }
  tuple(real, vector) both(vector x) { return (sum(x), 2 * x); }
  array[] real halves(array[] real x) { array[size(x)] real h; for (i in 1:size(x)) h[i] = x[i] / 2; return h; }
}
data { int N; vector[N] y; }
transformed data { array[N] int order; for (n in 1:N) { order[n] = N - n + 1; } }
parameters {
  vector[2] x; real s; // of functions with one name
  vector[3] v; array[2] real a; matrix[2,2] M; row_vector[2] r; // of increments by containers
  real mu; // of loops and branches
}
model {
  int i = 1;
  target += -energy(x) - energy(s); target += -abs(both(x).1); halves({s, s}) ~ normal(0, 1);
  target += -square(v); target += {-square(a[1]), -square(a[2])}; target += -square(M); target += -square(r);
  while (i <= N) { if (i % 2 == 0) { i += 1; continue; } y[order[i]] ~ normal(mu, 1); if (i > 5) break; i += 1; }
  for (w in y) w ~ normal(mu, 2);
  mu ~ normal(0, 1);
}
alternative model {
  x ~ normal(0, 2); s ~ normal(0, 2);
  v ~ std_normal(); a ~ std_normal(); to_vector(M) ~ normal(0, 2); r ~ logistic(0, 1);
  mu ~ normal(0, 3);
}
