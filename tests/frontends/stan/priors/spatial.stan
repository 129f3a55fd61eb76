// density
data { int N; int E; array[E] int a; array[E] int b; matrix[N, N] W; vector[N] D; array[N] int y; }
parameters { vector[N] phi; real<lower=0> tau; real<lower=0, upper=1> alpha; }
model {
  phi ~ multi_normal_prec(rep_vector(0, N), tau * (diag_matrix(D) - alpha * W)); // prior
  tau ~ gamma(2, 2); // prior
  y ~ poisson_log(phi);
}
// uniform: alpha
