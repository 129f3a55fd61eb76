// improper: x
data { int N; vector[N] seen; }
parameters { real x; }
model {
  x ~ normal(seen, 1);
}
