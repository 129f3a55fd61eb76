// improper: b, c, m
// kept: s
data { int N; int K; array[N] vector[K] y; }
parameters { array[2] vector<lower=1>[K] b; array[N] real<upper=0> c; matrix[K, N] m; real<lower=0> s; }
model {
  s ~ exponential(1); // prior
  for (n in 1 : N)
    y[n] ~ normal(b[1] + b[2] * c[n] + m[ : , n], s);
}
