// draws
data { int N; matrix[N, 2] X; array[N] int<lower=0, upper=1> y; }
parameters { vector[2] beta; }
model {
  target += student_t_lpdf(beta | 4, 0, 2.5); // prior
  target += bernoulli_logit_lpmf(y | X * beta);
}
