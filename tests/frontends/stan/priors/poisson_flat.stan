// improper: alpha, beta
data { int N; vector[N] x; array[N] int y; }
parameters { real alpha; real beta; }
model {
  y ~ poisson_log(alpha + beta * x);
}
