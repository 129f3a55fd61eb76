// draws
data { int K; int N; array[N] int<lower=1, upper=K> y; }
parameters { simplex[K] theta; }
model {
  for (n in 1 : N) target += log(theta[y[n]]);
}
// uniform: theta
