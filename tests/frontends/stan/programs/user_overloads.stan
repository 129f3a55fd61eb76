functions {
  real energy(real x) { return square(x); }
  real energy(vector x) { return dot_self(x); }
  tuple(real, vector) both(vector x) { return (sum(x), 2 * x); }
  array[] real halves(array[] real x) { array[size(x)] real h; for (i in 1:size(x)) h[i] = x[i] / 2; return h; }
}
parameters { vector[2] x; real s; }
model { target += -energy(x) - energy(s); target += -abs(both(x).1); halves({s, s}) ~ normal(0, 1); }
alternative model { x ~ normal(0, 2); s ~ normal(0, 2); }
