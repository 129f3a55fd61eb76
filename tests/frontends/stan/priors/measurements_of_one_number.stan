// improper: x
data { int N; vector[N] seen; }
parameters { real x; }
model {
  for (n in 1 : N) x ~ normal(seen[n], 1);
}
